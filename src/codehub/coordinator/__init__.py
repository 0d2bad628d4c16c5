"""The background loops. Any number of coordinators may run; the one that holds the lease runs the loops."""
