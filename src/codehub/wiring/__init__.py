"""The composition root, in role-sized parts: nothing else constructs a service."""
