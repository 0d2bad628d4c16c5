"""The waiting room's model: its own Lua scripts and its own Python, on doubles of Redis and PostgreSQL."""
