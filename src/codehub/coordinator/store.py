"""SQL of the lease. Used by `leader` and by the status page's service."""

from codehub.db import Queries

sql = Queries("codehub.coordinator")
