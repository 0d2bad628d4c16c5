"""Where workspaces really run: a handful of idempotent verbs, one implementation per kind of machine."""
