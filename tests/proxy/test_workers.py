"""Several workers on one socket: killed, replaced, drained. The upstream tells which worker it was that asked."""

import os
import signal
import socket
import struct
import threading

from tests.proxy.frames_of import read_close_frame
from tests.proxy.harness import Upstream, read_all, read_until, wait_until
from tests.proxy.workers import Workers, running

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HANDSHAKE = b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def who(peer: socket.socket) -> int:
    """The process at the other end of a Unix socket."""
    pid, _, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


def name_the_worker(peer: socket.socket, _upstream: Upstream) -> None:
    body = b"worker %07d" % who(peer)
    while read_until(peer, b"\r\n\r\n"):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n" + body)


def ask(client: socket.socket) -> int:
    client.sendall(ASK)
    answer = read_until(client, b"worker ")
    while len(answer.partition(b"worker ")[2]) < 7:
        answer += client.recv(100)
    return int(answer.partition(b"worker ")[2])


def clients_of_both(workers: Workers) -> dict[int, list[socket.socket]]:
    """Connections that are spread over the workers."""
    found: dict[int, list[socket.socket]] = {}
    while len(found) < 2 or sum(map(len, found.values())) < 8:
        batch = [workers.connect() for _ in range(8)]
        for client in batch:
            found.setdefault(ask(client), []).append(client)
    return found


def close_all(clients: dict[int, list[socket.socket]]) -> None:
    for group in clients.values():
        for client in group:
            client.close()


class Asker(threading.Thread):
    """One client that asks and asks; `answers` counts, and `failure` says why it stopped."""

    def __init__(self, client: socket.socket, worker: int) -> None:
        super().__init__()
        self._client = client
        self._worker = worker
        self.stop = threading.Event()
        self.answers = 0
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                assert ask(self._client) == self._worker
                self.answers += 1
        except Exception as e:  # noqa: BLE001
            self.failure = e


def all_go_on(askers: list[Asker], answers: int = 20) -> None:
    """Until each has had so many more; or has failed, which is found at the end."""
    before = {asker: asker.answers for asker in askers}
    wait_until("more answers", lambda: all(a.failure or a.answers >= before[a] + answers for a in askers))


def test_when_one_worker_is_killed_under_load_the_other_serves_on(socket_path: str) -> None:
    upstream = Upstream(name_the_worker, path=socket_path)
    with running(socket_path, count=2) as workers:
        clients = clients_of_both(workers)
        killed, other = clients
        askers = [Asker(client, other) for client in clients[other]]
        doomed = [Asker(client, killed) for client in clients[killed]]
        all_go_on(askers + doomed)
        os.kill(killed, signal.SIGKILL)
        all_go_on(askers)
        wait_until("its end", lambda: killed not in workers.pids())
        for _ in range(50):  # newcomers are served, by whoever is there
            with workers.connect() as newcomer:
                assert ask(newcomer) != killed
        wait_until("a new worker", lambda: len(workers.pids() - {other}) == 1)
        all_go_on(askers)
        for asker in askers + doomed:
            asker.stop.set()
            asker.join()
        assert [asker.failure for asker in askers] == [None] * len(askers)
        assert None not in [asker.failure for asker in doomed]
        close_all(clients)
    upstream.close()


def slow_or_tunnel(peer: socket.socket, upstream: Upstream) -> None:
    """Answers `/slow` when the test says so, anything else at once; WebSockets stay silent."""
    while head := read_until(peer, b"\r\n\r\n"):
        if b"Upgrade: websocket" in head:
            peer.sendall(SWITCH)
            read_all(peer)
            return
        upstream.connections += 1000
        if head.startswith(b"GET /slow"):
            assert RELEASE.wait(20)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n" + b"worker %07d" % who(peer))


RELEASE = threading.Event()


def test_a_worker_told_to_stop_finishes_what_is_under_way(socket_path: str) -> None:
    RELEASE.clear()
    upstream = Upstream(slow_or_tunnel, path=socket_path)
    with running(socket_path) as workers:
        idle, busy, tunnel = workers.connect(), workers.connect(), workers.connect()
        ask(idle)
        tunnel.sendall(HANDSHAKE)
        read_until(tunnel, b"\r\n\r\n")
        busy.sendall(ASK.replace(b"/ ", b"/slow "))
        wait_until("the slow request", lambda: upstream.connections >= 2000)
        workers.parent.send_signal(signal.SIGTERM)
        assert read_all(idle) == b""
        assert read_close_frame(tunnel) == (1001, "The server is restarting.")
        tunnel.close()
        RELEASE.set()
        answer = read_all(busy)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nConnection: close\r\n" in answer
        assert workers.parent.wait(20) == 0
        for client in (idle, busy):
            client.close()
    upstream.close()


def test_what_does_not_finish_in_time_is_ended(socket_path: str) -> None:
    RELEASE.clear()
    upstream = Upstream(slow_or_tunnel, path=socket_path)
    with running(socket_path, drain_seconds=0.2) as workers, workers.connect() as busy:
        busy.sendall(ASK.replace(b"/ ", b"/slow "))
        wait_until("the slow request", lambda: upstream.connections >= 1000)
        workers.parent.send_signal(signal.SIGTERM)
        read_all(busy)
        assert workers.parent.wait(20) == 0
    RELEASE.set()
    upstream.close()


def test_new_workers_take_over_while_the_old_ones_drain(socket_path: str) -> None:
    RELEASE.clear()
    upstream = Upstream(slow_or_tunnel, path=socket_path)
    with running(socket_path) as workers:
        (old,) = workers.pids()
        busy = workers.connect()
        busy.sendall(ASK.replace(b"/ ", b"/slow "))
        wait_until("the slow request", lambda: upstream.connections >= 1000)
        workers.parent.send_signal(signal.SIGHUP)
        wait_until("the new worker", lambda: len(workers.pids()) == 2)
        for _ in range(20):
            with workers.connect() as client:
                assert ask(client) in workers.pids()
        RELEASE.set()
        assert read_all(busy).endswith(b"worker %07d" % old)
        wait_until("the old one's end", lambda: old not in workers.pids())
        with workers.connect() as client:
            assert ask(client) != old
        busy.close()
    upstream.close()


def test_workers_end_with_their_parent(socket_path: str) -> None:
    upstream = Upstream(name_the_worker, path=socket_path)
    with running(socket_path, count=2) as workers:
        pids = workers.pids()
        workers.parent.kill()
        wait_until("their end", lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids))  # noqa: PTH110
    upstream.close()
