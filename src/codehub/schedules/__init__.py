"""Schedules: a class's workspaces are started before its lesson begins, each by an ordinary start."""
