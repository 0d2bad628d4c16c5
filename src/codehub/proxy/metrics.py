"""What the proxy counts. On the hot path plain integers; `server` hands them to Prometheus once a second."""

from collections.abc import Mapping

from prometheus_client import Counter, Gauge

from codehub.proxy.model import Failure

REQUESTS = Counter("codehub_proxy_requests", "Requests answered, by class of status", ["status"])
BYTES = Counter("codehub_proxy_bytes", "Bytes of bodies and WebSockets", ["direction"])
FAILURES = Counter("codehub_proxy_upstream_failures", "Requests an upstream did not answer", ["reason"])
WEBSOCKETS = Gauge("codehub_proxy_open_websockets", "WebSockets open now", multiprocess_mode="livesum")
CONNECTIONS = Gauge("codehub_proxy_open_connections", "Client connections open now", multiprocess_mode="livesum")

_requests = [REQUESTS.labels(f"{digit}xx") for digit in range(10)]
_bytes_in, _bytes_out = BYTES.labels("in"), BYTES.labels("out")
_failures: Mapping[Failure, Counter] = {failure: FAILURES.labels(failure.name.lower()) for failure in Failure}


class Counters:
    __slots__ = ("_failures", "bytes_in", "bytes_out", "statuses")

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = 0
        self.statuses = [0] * 10
        self._failures = dict.fromkeys(Failure, 0)

    def failed(self, failure: Failure) -> None:
        self._failures[failure] += 1

    def flush(self, connections: int, websockets: int) -> None:
        for counter, count in zip(_requests, self.statuses, strict=True):
            if count:
                counter.inc(count)
        for failure, count in self._failures.items():
            if count:
                _failures[failure].inc(count)
        _bytes_in.inc(self.bytes_in)
        _bytes_out.inc(self.bytes_out)
        WEBSOCKETS.set(websockets)
        CONNECTIONS.set(connections)
        self.__init__()  # type: ignore[misc]
