"""A real Valkey with a replica, watched by three Sentinels, on free ports of 127.0.0.1, in a few seconds."""

import contextlib
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis

from codehub.embedded.redis import binary
from tests.archives.s3 import free_ports
from tests.waiting_room.clusters import Node, until

NAME, PASSWORD, SENTINEL_PASSWORD = "labs", "a-password/for@tests", "another-password"
WATCH = """
port {port}
bind 127.0.0.1
dir "{folder}"
requirepass {own}
sentinel sentinel-pass {own}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} 1000
sentinel failover-timeout {name} 5000
"""


@dataclass
class Watched:
    servers: list[Node]
    sentinels: list[Node]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.sentinels)
        password = PASSWORD.replace("/", "%2F").replace("@", "%40")
        return f"redis+sentinel://:{password}@{hosts}/{NAME}?sentinel_password={SENTINEL_PASSWORD}"

    def primary(self) -> Node:
        """As the first Sentinel that lives says."""
        asked = next(node for node in self.sentinels if node.process.poll() is None)
        _, port = asked.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return next(node for node in self.servers if node.port == int(port))

    def kill_primary(self) -> Node:
        """Returns the one that takes over, as soon as it does."""
        dead = self.primary()
        dead.kill()
        until(lambda: self.primary() is not dead)
        return self.primary()


def _node(port: int, password: str, process: "subprocess.Popen[bytes]") -> Node:
    node = Node(port, process)
    node.client = redis.Redis(port=port, password=password, decode_responses=True, socket_timeout=10)
    return node


def _run(port: int, folder: pathlib.Path, *words: str, password: str) -> Node:
    with (folder / "log").open("wb") as log:
        return _node(port, password, subprocess.Popen([binary(), *words], stdout=log, stderr=log))


def _server(port: int, folder: pathlib.Path, primary: int | None) -> Node:
    folder.mkdir()
    options = {
        "port": port,
        "bind": "127.0.0.1",
        "dir": folder,
        "save": "",
        "appendonly": "yes",
        "requirepass": PASSWORD,
        "masterauth": PASSWORD,
        "repl-diskless-sync-delay": 0,
        **({} if primary is None else {"replicaof": f"127.0.0.1 {primary}"}),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return _run(port, folder, *words, password=PASSWORD)


def _sentinel(port: int, folder: pathlib.Path, primary: int) -> Node:
    folder.mkdir()
    said = {"port": port, "folder": folder, "name": NAME, "primary": primary}
    config = folder / "sentinel.conf"
    config.write_text(WATCH.format(**said, own=SENTINEL_PASSWORD, password=PASSWORD))
    return _run(port, folder, str(config), "--sentinel", password=SENTINEL_PASSWORD)


def _knows_all(sentinel: Node) -> bool:
    state: Any = sentinel.ask("SENTINEL", "MASTER", NAME)
    if not isinstance(state, dict):
        state = dict(zip(state[::2], state[1::2], strict=True))
    return int(state["num-slaves"]) == 1 and int(state["num-other-sentinels"]) == 2


@contextlib.contextmanager
def running_sentinels() -> Iterator[Watched]:
    with tempfile.TemporaryDirectory(prefix="codehub-sentinels-") as made, contextlib.ExitStack() as ends:
        folder = pathlib.Path(made)
        first, second, *watching = free_ports(5)
        servers = [_server(first, folder / "a", None), _server(second, folder / "b", first)]
        ends.callback(_end, servers)
        until(lambda: servers[1].client.info("replication").get("master_link_status") == "up")
        sentinels = [_sentinel(port, folder / str(port), first) for port in watching]
        ends.callback(_end, sentinels)
        for sentinel in sentinels:
            until(lambda sentinel=sentinel: _knows_all(sentinel))  # type: ignore[misc]
        yield Watched(servers, sentinels)


def _end(nodes: list[Node]) -> None:
    for node in nodes:
        node.client.close()
        node.process.kill()
        node.process.wait()
