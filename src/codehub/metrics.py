"""Prometheus metrics. Every process counts; the API's `/metrics` adds up what all processes of one `serve` counted.

Under the supervisor the counters live in small files (`PROMETHEUS_MULTIPROC_DIR`), written by each process and read
by whichever one is asked. A process that runs alone keeps them in memory.
"""

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

HTTP_REQUESTS = Counter("codehub_http_requests", "API requests answered", ["method", "route", "status"])
HTTP_SECONDS = Histogram(
    "codehub_http_request_seconds",
    "Time to answer an API request",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
LOOP_TICKS = Counter("codehub_loop_ticks", "Background loop ticks", ["loop", "result"])
LOOP_SECONDS = Histogram("codehub_loop_tick_seconds", "Time a tick took", ["loop"], buckets=(0.01, 0.1, 1, 10, 60, 300))
EVENT_RESETS = Counter("codehub_event_resets", "Event streams that were told to begin again", ["reason"])
SETBACKS = Counter("codehub_setbacks", "Objects that a loop could not advance and has set aside", ["kind"])
LEADING = Gauge("codehub_coordinator_leading", "1 while this coordinator leads", multiprocess_mode="livesum")
LOGINS = Counter("codehub_logins", "Log-ins, by the way in", ["way", "result"])
WAKES = Counter("codehub_wakes", "Sleeping workspaces that a client's request has woken")
WAKE_SECONDS = Histogram(
    "codehub_wake_seconds",
    "From the request to wake a workspace to its running",
    buckets=(0.25, 0.5, 1, 2, 3, 5, 10, 20, 60, 300),
)
QUEUE_POLLS = Counter("codehub_queue_polls", "Waiting people's questions where they stand")
QUEUE_EXPIRED = Counter("codehub_queue_expired", "Waiting people who lost their place because they were not heard of")
QUEUE_WAITING = Gauge("codehub_queue_waiting", "People in line, of all events", multiprocess_mode="mostrecent")
QUEUE_OFFERS = Counter("codehub_queue_offers", "Places that were offered to waiting people")
QUEUE_ETA_ERROR = Histogram(
    "codehub_queue_eta_error",
    "How far what waiting people were told lay from their wait, as a part of it",
    buckets=(0.05, 0.1, 0.15, 0.25, 0.5, 1, 2, 5),
)
QUEUE_ETA = Counter("codehub_queue_eta", "Waits that lay between the bounds that were told, or did not", ["bounds"])
QUEUE_ADMITTED = Counter("codehub_queue_admitted", "Waiting people who have entered")
PRACTICE_TASKS = Counter("codehub_practice_tasks", "Starter files put and checks run for sessions", ["kind", "outcome"])
PRACTICE_SECONDS = Histogram(
    "codehub_practice_seconds",
    "Time that putting a step's starter files, or running its checks, took in the workspace",
    ["kind"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
MULTIPROC = "PROMETHEUS_MULTIPROC_DIR"


def render() -> tuple[bytes, str]:
    if MULTIPROC not in os.environ:
        return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST


def forget_process(pid: int) -> None:
    """Drop a dead process's gauges; its counters stay, or sums would go backwards."""
    if MULTIPROC in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]
