"""A real Kubernetes cluster on this machine, for development and tests: `make cluster` (docs/cluster.md)."""
