"""The names of everything that the waiting room keeps in Redis. The seed's four are among them, for `redis-cli`.

All keys of one event have one hash tag, `{event}`, so that a cluster keeps them on one node and a script may use them
together. Used by `line`, and by tests that look into Redis.
"""

import functools

BEATING = b"alive"  # what the key of a heartbeat holds


@functools.lru_cache(maxsize=1024)
def of_event(event: str) -> tuple[str, ...]:
    """In the order in which `lua/common.lua` names them."""
    tag = f"{{{event}}}"
    return (
        f"queue:event:{tag}",  # sorted set: pid → sequence, all who have not expired; position = rank + 1
        f"queue:live:{tag}",  # sorted set: pid → sequence, those who may be offered a place
        f"queue:passed:{tag}",  # sorted set: pid → sequence, those who did not take their offer
        f"queue:beat:{tag}",  # sorted set: pid → when last heard of, milliseconds; all who are not silent
        f"queue:silent:{tag}",  # sorted set: the same of those who are
        f"queue:offer:{tag}",  # sorted set: pid → milliseconds after which their offer is closed
        f"queue:offerid:{tag}",  # hash: pid → "offer id, its sequence, when first told (0: not yet), last closed id"
        f"queue:meta:{tag}",  # hash: which Redis and epoch this is, the counter, hold, window, totals
        f"queue:log:{tag}",  # stream, capped: why positions moved
    )


def event(event_id: str) -> str:
    return of_event(event_id)[0]


def meta(event_id: str) -> str:
    return of_event(event_id)[7]


def heartbeat(event_id: str, pid: str) -> str:
    return f"heartbeat:{{{event_id}}}.{pid}"


def waiting(event_id: str, pid: str) -> str:
    """JSON: `user_id`, `seq`, `joined` (milliseconds)."""
    return f"queue:waiting:{{{event_id}}}.{pid}"


def personal(event_id: str, name: str) -> str:
    """Stream: ready, entered, expired, left, each with the sequence."""
    return f"stream:event:{{{event_id}}}:user:{name}"
