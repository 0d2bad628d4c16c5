"""The entry points of the processes that `codehub serve` starts."""
