"""The names of everything that activity keeps in Redis. The seeds' two keys are among them, for `redis-cli`."""

ACTIVITY = "codehub:activity"  # sorted set: workspace → milliseconds of its newest activity; a write buffer
TAKEN = "codehub:activity:taken"  # set: names of such sets that a tick has taken over and not yet finished
PROXIES = "codehub:proxies"  # sorted set: proxy instance → milliseconds until which its lease is good
FLUSHED = "codehub:proxies:flushed"  # hash: proxy instance → "milliseconds up to which it has flushed:round it knew"
ROUND = "codehub:activity:round"  # a number: a proxy that has not flushed since it was raised should do so now
ABOUT_TO_SLEEP = "codehub:activity:about_to_sleep"  # set: workspaces in which nothing may happen unnoticed
EPOCH = "codehub:activity:epoch"  # which life of Redis this is, and since when: "run id|milliseconds"
CLOCK = "codehub:activity:clock"  # what the TTL runner's clocks said at its last tick
DETAILS_SECONDS = 30 * 86400  # what is only for explaining goes after a month without news


def connections(workspace_id: str) -> str:
    """How many WebSockets are open; absent at 0."""
    return f"ws_conn:{workspace_id}"


def idle_timer(workspace_id: str) -> str:
    return f"idle_timer:{workspace_id}"


def details(workspace_id: str) -> str:
    """Hash: counts by kind, last input, last output."""
    return f"codehub:activity:of:{workspace_id}"


def listings(workspace_id: str) -> str:
    """Hash: a folder's listing → when it was last asked for."""
    return f"codehub:activity:listings:{workspace_id}"


def lease_seconds(flush_interval: float) -> float:
    """How long a proxy is believed to live without a word: it may miss one flush, not two."""
    return 2 * flush_interval + 5.0
