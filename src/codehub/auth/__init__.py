"""People: who they are, how they log in, what their programs may do."""
