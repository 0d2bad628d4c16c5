"""Who may do what: principals, and the rules about them. An engine: it knows no capability."""
