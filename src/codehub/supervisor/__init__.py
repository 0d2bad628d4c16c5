"""`codehub serve`: holds the socket, starts servers and roles as child processes, restarts what dies."""
