"""Workspaces as pods of a Kubernetes cluster. Loaded only where CODEHUB_RUNTIME=kubernetes."""
