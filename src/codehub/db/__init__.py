"""The database layer: a pool with transactions, SQL in named blocks, notifications, migrations."""

from codehub.db.listener import Listener
from codehub.db.pool import Connection, Database, one, rows
from codehub.db.queries import Queries

__all__ = ["Connection", "Database", "Listener", "Queries", "one", "rows"]
