"""Workspaces as containers of this machine's Docker engine. Loaded only where CODEHUB_RUNTIME=docker."""
