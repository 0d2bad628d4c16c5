"""What the proxy counts. On the hot path plain integers; `server` hands them to Prometheus once a second."""

from collections.abc import Mapping
from enum import Enum

from prometheus_client import Counter, Gauge

from codehub.proxy.model import Failure

REQUESTS = Counter("codehub_proxy_requests", "Requests answered, by class of status", ["status"])
BYTES = Counter("codehub_proxy_bytes", "Bytes of bodies and WebSockets", ["direction"])
FAILURES = Counter("codehub_proxy_upstream_failures", "Requests an upstream did not answer", ["reason"])
REFUSALS = Counter("codehub_proxy_refusals", "Clients that were refused or cut off, by reason", ["reason"])
WEBSOCKETS = Gauge("codehub_proxy_open_websockets", "WebSockets open now", multiprocess_mode="livesum")
CONNECTIONS = Gauge("codehub_proxy_open_connections", "Client connections open now", multiprocess_mode="livesum")


class Refusal(Enum):
    """Why a client was refused or cut off; the metric's label."""

    MALFORMED = "malformed"  # not HTTP, ambiguous, or too large
    HEAD_SECONDS = "head_seconds"
    BODY_RATE = "body_rate"
    UNREAD = "unread"  # nothing of an answer was taken
    SHARE = "share"  # one person or address has too many requests under way
    UPSTREAM_BUSY = "upstream_busy"
    CONNECTIONS = "connections"  # of one person or address
    CROWDED = "crowded"  # made room for others


_requests = [REQUESTS.labels(f"{digit}xx") for digit in range(10)]
_bytes_in, _bytes_out = BYTES.labels("in"), BYTES.labels("out")
_failures: Mapping[Failure, Counter] = {failure: FAILURES.labels(failure.name.lower()) for failure in Failure}
_refusals: Mapping[Refusal, Counter] = {refusal: REFUSALS.labels(refusal.value) for refusal in Refusal}
_also = {Failure.SHARE: Refusal.SHARE, Failure.FULL: Refusal.UPSTREAM_BUSY}


class Counters:
    __slots__ = ("_failures", "_refusals", "bytes_in", "bytes_out", "statuses")

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = 0
        self.statuses = [0] * 10
        self._failures = dict.fromkeys(Failure, 0)
        self._refusals = dict.fromkeys(Refusal, 0)

    def failed(self, failure: Failure) -> None:
        if failure in _also:
            self.refused(_also[failure])
        else:
            self._failures[failure] += 1

    def refused(self, why: Refusal) -> None:
        self._refusals[why] += 1

    def flush(self, connections: int, websockets: int) -> None:
        for counter, count in zip(_requests, self.statuses, strict=True):
            if count:
                counter.inc(count)
        for failure, count in self._failures.items():
            if count:
                _failures[failure].inc(count)
        for refusal, count in self._refusals.items():
            if count:
                _refusals[refusal].inc(count)
        _bytes_in.inc(self.bytes_in)
        _bytes_out.inc(self.bytes_out)
        WEBSOCKETS.set(websockets)
        CONNECTIONS.set(connections)
        self.__init__()  # type: ignore[misc]
