"""Moves workspaces from what is to what is wanted: observes, plans, acts, and puts idle ones to sleep."""
