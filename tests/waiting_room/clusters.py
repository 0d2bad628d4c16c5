"""A real cluster for tests: three primaries with a replica each, on free ports of one address, in a few seconds."""

import contextlib
import functools
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis

from codehub.embedded.redis import binary

SLOTS = 16384
PRIMARIES = 3
LOOPBACK = "127.0.0.1"


@dataclass
class Node:
    port: int
    process: subprocess.Popen[bytes]
    host: str = LOOPBACK
    password: str | None = None

    @functools.cached_property
    def client(self) -> redis.Redis:
        return redis.Redis(self.host, self.port, password=self.password, decode_responses=True, socket_timeout=10)

    def ask(self, *words: str | int) -> Any:
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def kill(self) -> None:
        """With -9: as a machine that has lost its power."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def id(self) -> str:
        return str(self.ask("CLUSTER", "MYID"))


@dataclass
class Cluster:
    nodes: list[Node]

    @property
    def port(self) -> int:
        return next(node.port for node in self.nodes if node.process.poll() is None)

    def primary_of(self, key: str) -> Node:
        """Which node keeps a key now."""
        asked = next(node for node in self.nodes if node.process.poll() is None)
        slot = asked.ask("CLUSTER", "KEYSLOT", key)
        for first, last, (_, port, *_), *_ in asked.ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == port)
        raise LookupError(key)


def _free_ports(count: int) -> list[int]:
    """A node listens on its port and, for the others, on that plus 10,000."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            one = held.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1] % 20_000 + 20_000
            with contextlib.suppress(OSError), socket.socket() as client, socket.socket() as bus:
                client.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
                if port not in ports:
                    ports.append(port)
    return ports


def _start(port: int, folder: pathlib.Path, host: str, password: str | None) -> Node:
    folder.mkdir()
    options = {
        "port": port,
        "bind": host,
        **({"requirepass": password, "masterauth": password} if password else {}),
        "dir": folder,
        "save": "",
        "appendonly": "no",
        "cluster-enabled": "yes",
        "cluster-announce-ip": host,
        "cluster-config-file": "nodes.conf",
        "cluster-node-timeout": 1000,
        "cluster-replica-validity-factor": 0,
        "repl-diskless-sync-delay": 0,
        "repl-ping-replica-period": 1,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    log = (folder / "log").open("wb")
    with log:
        return Node(port, subprocess.Popen([binary(), *words], stdout=log, stderr=log), host, password)


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something in a server; failing to ask it counts as not yet."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            if what():
                return
        assert time.monotonic() < end, "the cluster does not get there"
        time.sleep(0.02)


def _agreed(node: Node) -> bool:
    known = str(node.ask("CLUSTER", "INFO"))
    return "cluster_state:ok" in known and f"cluster_known_nodes:{2 * PRIMARIES}\r" in known


def _form(nodes: list[Node]) -> None:
    for node in nodes:
        until(lambda node=node: bool(node.client.ping()))  # type: ignore[misc]
    primaries, replicas = nodes[:PRIMARIES], nodes[PRIMARIES:]
    for n, node in enumerate(primaries):
        first, last = n * SLOTS // PRIMARIES, (n + 1) * SLOTS // PRIMARIES - 1
        node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        node.ask("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
    for node in nodes[1:]:
        node.ask("CLUSTER", "MEET", nodes[0].host, nodes[0].port)
    for primary, replica in zip(primaries, replicas, strict=True):
        name = primary.id()
        until(lambda replica=replica, name=name: name in str(replica.ask("CLUSTER", "NODES")))  # type: ignore[misc]
        replica.ask("CLUSTER", "REPLICATE", name)
    for replica in replicas:
        until(lambda replica=replica: replica.client.info("replication").get("master_link_status") == "up")  # type: ignore[misc]
    for node in nodes:
        until(lambda node=node: _agreed(node))  # type: ignore[misc]


@contextlib.contextmanager
def running_cluster(host: str = LOOPBACK, password: str | None = None) -> Iterator[Cluster]:
    """Whoever is not on this machine needs a password there."""
    with tempfile.TemporaryDirectory(prefix="codehub-cluster-") as folder:
        ports = _free_ports(2 * PRIMARIES)
        nodes = [_start(port, pathlib.Path(folder, str(port)), host, password) for port in ports]
        try:
            _form(nodes)
            yield Cluster(nodes)
        finally:
            for node in nodes:
                node.client.close()
                node.process.kill()
                node.process.wait()
