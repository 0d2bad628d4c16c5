"""What one worker of the proxy bears: idle connections, endless bodies, slow clients, and one workspace's flood.

A developer runs it and reads one line for each. The worker is the product's (routing table, gate, activity), on core 0;
clients and workspaces are on core 1.

    python bench/proxy_limits.py [--connections N] [--gigabytes N] [--seconds S]
"""

import argparse
import concurrent.futures
import contextlib
import pathlib
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import _proxies
from bench._proxies import Lab, Load, Result, Subject

KILOBYTE, MEGABYTE, GIGABYTE = 1 << 10, 1 << 20, 1 << 30
SLOW = 200  # connections that do not move
SLOW_BODY = 64 * MEGABYTE
RATE = 50  # requests a second of somebody who works
AT_MOST = 450  # connections of one person to one workspace, who is given half of its 1,024


class Stage(NamedTuple):
    """A workspace `bench` at the load, one that is `calm` with a load of its own, one that is `deaf`, and a crowd."""

    load: Load
    calm: Load
    crowd: list[Load]
    lab: Lab


def memory(subject: Subject, what: str = "VmRSS") -> int:
    """Bytes; `VmHWM` is the most there ever were."""
    status = pathlib.Path(f"/proc/{subject.pid}/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) * KILOBYTE


def settled(subject: Subject) -> int:
    """Its memory when it does not change any more."""
    before = -1
    while (found := memory(subject)) != before:
        before = found
        time.sleep(1)
    return found


def warm(load: Load, lab: Lab, subject: Subject) -> None:
    """Until its memory is that of a worker that has worked: caches full, arenas there."""
    for _ in range(2):
        load.run(subject, lab.get(46), connections=64, seconds=1)
        load.run(subject, lab.websocket(), connections=64, seconds=1, message=64)


def idle(stage: Stage, options: argparse.Namespace) -> None:
    load, lab = stage.load, stage.lab
    for name, message in (("WebSockets", 1), ("keep-alive HTTP connections", 0)):
        with lab.ours() as ours:
            warm(load, lab, ours)
            before = settled(ours)
            hold(stage, ours, options.connections, message)
            each = (settled(ours) - before) / options.connections / KILOBYTE
            for one in stage.crowd:
                one.drop()
        print(f"{options.connections} idle {name}: {each:.1f} KB each (goal: 40)", flush=True)


def hold(stage: Stage, subject: Subject, connections: int, message: int) -> None:
    """As many to each workspace of the crowd as to the next: one alone is not given thousands."""
    lab, crowd = stage.lab, stage.crowd
    for number, one in enumerate(crowd):
        head = lab.websocket(f"crowd{number}") if message else lab.get(46, f"crowd{number}")
        share = connections * (number + 1) // len(crowd) - connections * number // len(crowd)
        one.hold(subject, head, share, message=message)


def endless(stage: Stage, options: argparse.Namespace) -> None:
    load, lab = stage.load, stage.lab
    size = options.gigabytes * GIGABYTE
    for name, head, body in (("down", lab.get(size), 0), ("up", lab.post(size), size)):
        with lab.ours() as ours:
            warm(load, lab, ours)
            before, begun = memory(ours, "VmHWM"), time.monotonic()
            load.run(ours, head, connections=1, seconds=0, body=body)
            took, grown = time.monotonic() - begun, memory(ours, "VmHWM") - before
        rate = size / took / MEGABYTE
        print(f"{options.gigabytes} GB {name}: {grown / MEGABYTE:.1f} MB more at its peak, {rate:.0f} MB/s", flush=True)


# Clients, and a workspace, that take nothing.


class Deaf:
    """A workspace that accepts connections and reads nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._open.append(self._listener.accept()[0])

    def close(self) -> None:
        for end in (self._listener, *self._open):
            end.close()


@contextlib.contextmanager
def clients(subject: Subject, count: int, text: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as held:
        ends = []
        for _ in range(count):
            end = held.enter_context(socket.create_connection(("127.0.0.1", subject.port)))
            end.sendall(text)
            ends.append(end)
        yield ends


def push(ends: list[socket.socket]) -> None:
    """Into all of them, until none takes any more."""
    piece = b"x" * MEGABYTE
    for end in ends:
        end.setblocking(False)
    while writable := select.select([], ends, [], 1.0)[1]:
        for end in writable:
            with contextlib.suppress(BlockingIOError):
                end.send(piece)


def slow(stage: Stage, _options: argparse.Namespace) -> None:
    load, lab = stage.load, stage.lab

    def report(name: str, head: pathlib.Path, act: Callable[[list[socket.socket]], None]) -> None:
        with lab.ours() as ours:
            warm(load, lab, ours)
            before = settled(ours)
            with clients(ours, SLOW, head.read_bytes()) as ends:
                act(ends)
                each = (settled(ours) - before) / SLOW / KILOBYTE
                others = load.run(ours, lab.get(46), connections=8, seconds=2)
        size = SLOW_BODY // MEGABYTE
        told = f"{each:.0f} KB each; others meanwhile: p50 {others.p50:.2f} ms, p99 {others.p99:.2f} ms"
        print(f"{SLOW} {name} of {size} MB each: {told}", flush=True)

    report("readers that read nothing", lab.get(SLOW_BODY), lambda _ends: None)
    report("bodies into a workspace that reads nothing", lab.post(SLOW_BODY, "deaf"), push)
    report("bodies that come no further than their head", lab.post(SLOW_BODY), lambda _ends: None)


# A flood.


def flood(stage: Stage, options: argparse.Namespace) -> None:
    load, lab = stage.load, stage.lab
    kinds = {"small GETs": lab.get(46), "1 MB downloads": lab.get(MEGABYTE)}
    with lab.ours() as ours:
        warm(load, lab, ours)

        def calm() -> Result:
            return stage.calm.run(ours, lab.get(46, "calm"), connections=8, seconds=options.seconds, rate=RATE)

        def told(found: Result) -> str:
            return f"{found.rate:.0f} of {RATE} req/s, p50 {found.p50:.2f} ms, p99 {found.p99:.2f} ms"

        print(f"one workspace alone: {told(calm())}", flush=True)
        for name, head in kinds.items():
            with concurrent.futures.ThreadPoolExecutor() as threads:
                flooding = threads.submit(load.run, ours, head, connections=256, seconds=options.seconds + 3)
                time.sleep(1)
                found = calm()
                rate = flooding.result().rate
            print(f"beside another's 256 connections of {name} ({rate:.0f}/s): {told(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=5000, help="idle ones")
    parser.add_argument("--gigabytes", type=int, default=10, help="of one body")
    parser.add_argument("--seconds", type=float, default=10, help="of the flood")
    parser.add_argument("--only", default="", help="idle, endless, slow or flood")
    options = parser.parse_args()
    _proxies.require("taskset", "cc")
    _proxies.unwind_on_signals()
    files = _proxies.raise_open_files()
    if 2 * options.connections + 500 > files:
        options.connections = (files - 500) // 2
        print(f"only {files} files may be open at once: {options.connections} connections", flush=True)
    with _proxies.going_first(), contextlib.ExitStack() as running:
        count = -(-options.connections // AT_MOST)
        load, calm, *crowd = (running.enter_context(_proxies.load()) for _ in range(2 + count))
        deaf = running.enter_context(contextlib.closing(Deaf()))
        ports = {"bench": load.port, "calm": calm.port, "deaf": deaf.port}
        ports |= {f"crowd{number}": one.port for number, one in enumerate(crowd)}
        stage = Stage(load, calm, crowd, running.enter_context(_proxies.lab(ports)))
        for part in (idle, endless, slow, flood):
            if options.only in part.__name__:
                part(stage, options)


if __name__ == "__main__":
    main()
