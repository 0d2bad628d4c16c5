"""The database layer: a pool with transactions, SQL in named blocks, notifications, migrations."""

from codehub.db.listener import Listener
from codehub.db.pool import EXCLUSIVE_SECONDS, Connection, Database, LockTimeoutError, Row, is_away, one, rows
from codehub.db.queries import Queries

__all__ = [
    "EXCLUSIVE_SECONDS",
    "Connection",
    "Database",
    "Listener",
    "LockTimeoutError",
    "Queries",
    "Row",
    "is_away",
    "one",
    "rows",
]
