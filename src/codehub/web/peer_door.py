"""Where the API listens for front doors on other machines. Opened by `roles.api`.

TLS has seen to it that only processes of this platform get here (`peers`). From here on it is as on the Unix socket
that the two share on one machine: the connection's peer is no client, and what the front door says of clients counts.
"""

from typing import Any

from codehub.web.guard import GuardedProtocol


class PeerProtocol(GuardedProtocol):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.client = self.server = None
        self.scheme = "http"


def protocol_with(head_seconds: float) -> type[PeerProtocol]:
    return type("BoundedPeerProtocol", (PeerProtocol,), {"head_seconds": head_seconds})
