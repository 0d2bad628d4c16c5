"""Activity: what counts, how it travels, what is decided from it."""
