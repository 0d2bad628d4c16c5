"""Reads what a WebSocket client reads at the end."""

import socket

from tests.proxy.harness import read_all


def read_close_frame(client: socket.socket) -> tuple[int, str]:
    """(code, reason) of the close frame that is all that comes before the end."""
    data = read_all(client)
    assert data[0] == 0x88
    assert data[1] == len(data) - 2
    return int.from_bytes(data[2:4], "big"), data[4:].decode()
