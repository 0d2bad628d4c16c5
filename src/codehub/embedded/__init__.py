"""PostgreSQL and Redis that come with the package, for one-machine use. The supervisor runs them."""
