"""Activity: what counts as work, how it travels from the proxies to the database, and what it says about idleness."""
