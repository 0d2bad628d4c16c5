"""The way into a workspace: its own origin, the pass that opens it, and the rules about who gets what."""
