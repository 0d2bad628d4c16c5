"""Archives: a home directory as one compressed object, and back. The coordinator calls `service`."""
