"""Templates: what a workspace is made of, one TOML file each."""
