"""How long `codehub serve` takes to be ready, and its API to be back after a kill -9; beside it, the API by itself.

`serve` forks its roles from what it has loaded once. The peer of a forked API is `codehub api` on the same servers,
started as a process of its own: it loads everything first. 7 rounds, one after the other.

    python bench/serve.py [--rounds 7]
"""

import argparse
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.places import a_place
from tests.platform import CODEHUB, Platform, clean_environment

from codehub.embedded.datadir import DataDir


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:  # noqa: S310 (our own address)
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def seconds_until(done: Callable[[], bool]) -> float:
    begun = time.perf_counter()
    while not done():
        assert time.perf_counter() - begun < 60
        time.sleep(0.002)
    return time.perf_counter() - begun


def killed(platform: Platform) -> float:
    """From the death of the API to its next answer, through the front door."""
    before = platform.children()["api"]
    os.kill(before, signal.SIGKILL)
    return seconds_until(lambda: platform.children().get("api", before) != before and answers(platform.url))


def alone(data: DataDir) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = clean_environment(
        CODEHUB_DATA_DIR=str(data.root),
        CODEHUB_DATABASE_URL=data.database_url,
        CODEHUB_REDIS_URL=data.redis_url,
        CODEHUB_SECRET_KEY=data.secret("signing-key"),
        CODEHUB_PORT=str(port),
        CODEHUB_LOG_LEVEL="warning",
    )
    process = subprocess.Popen([*CODEHUB, "api"], env=environment)
    try:
        return seconds_until(lambda: answers(f"http://127.0.0.1:{port}"))
    finally:
        process.terminate()
        process.wait()


def tell(what: str, seconds: list[float]) -> None:
    print(f"{what:42} median {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    ready: list[float] = []
    back: list[float] = []
    peer: list[float] = []
    with a_place(on_disk=True) as folder:
        platform = Platform(folder / "data")
        platform.start().stop()  # the very first start makes the database
        for _ in range(options.parse_args().rounds):
            begun = time.perf_counter()
            platform.start()
            ready.append(time.perf_counter() - begun)
            back.append(killed(platform))
            peer.append(alone(DataDir(folder / "data")))
            platform.stop()
    tell("codehub serve, until it is ready", ready)
    tell("the API after kill -9, until it answers", back)
    tell("codehub api by itself, until it answers", peer)
    pause = 0.25  # before a role that died is started again
    print(f"the fork's part of that is {(statistics.median(back) - pause) / statistics.median(peer):.2f} of its peer's")


if __name__ == "__main__":
    main()
