"""The outbox of all capabilities: what changed, for whom, in the order of commits; and who is told of it."""
