"""The front door: one strict parser between browsers and everything that answers them. `codehub proxy` runs it."""
