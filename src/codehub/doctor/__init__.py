"""`codehub doctor`: looks at everything a start depends on, and says what to do. Starts and changes nothing."""
