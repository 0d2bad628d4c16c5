"""Workspaces: a person's home, the IDE on it, and the rules by which it runs, sleeps and is stored away."""
