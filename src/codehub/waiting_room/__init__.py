"""The waiting room: a fair line for an event that has fewer places than people."""
