"""The operator's door: the API on a Unix socket of its own, for commands on this machine. Opened by `roles.api`.

What comes in here is the operator, who may do everything, so the front door never connects to it: requests of others
go to another socket. Its folder is closed to every account but the one that runs the platform, and the kernel says for
each connection who is at the other end.
"""

import socket
import struct
from typing import Any

from codehub import logs
from codehub.http.access import OPERATOR_UID
from codehub.web.guard import GuardedProtocol

log = logs.get()
ROOT = 0


def uid_of(connection: socket.socket) -> int:
    """Whose process is at the other end; of a listening socket, whose process began to listen."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    uid: int = struct.unpack("=iII", credentials)[1]
    return uid


class OperatorProtocol(GuardedProtocol):
    allowed = frozenset({ROOT})  # `protocol_for` makes a class with the platform's own account
    _uid = -1

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._uid = uid_of(transport.get_extra_info("socket"))
        if self._uid not in self.allowed:
            log.warning("Refused a connection to the operator's socket", uid=self._uid)
            self._refused = True
            transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[OPERATOR_UID] = self._uid  # type: ignore[literal-required]


def protocol_for(listener: socket.socket, head_seconds: float) -> type[OperatorProtocol]:
    """Lets in root and the account that opened the socket."""
    allowed = frozenset({ROOT, uid_of(listener)})
    return type("BoundedOperatorProtocol", (OperatorProtocol,), {"head_seconds": head_seconds, "allowed": allowed})
