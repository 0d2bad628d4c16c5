"""One piece of work on one home, in a container that has exactly this volume, no network and no secret.

A runtime starts it with what to do as JSON; contents come on standard input, as `archives.worker` and `shepherd.place`
want them. It ends with its client: when standard input ends and nothing more is to come from there, nobody waits.
"""

import json
import os
import pathlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from codehub.archives import worker
from codehub.runtimes import files
from codehub.runtimes.shepherd import measuring, place
from codehub.runtimes.shepherd.enter import read_exactly

VOLUME = "/volume"  # where the home is mounted


def pack(volume: str, live: bool, gzip: bool) -> None:
    _end_with_client()
    worker.run("pack", {"source": volume, "live": live, "gzip": gzip})


def unpack(volume: str, uid: int, quota_bytes: int, quota_inodes: int) -> None:
    os.chown(volume, uid, uid)
    owner = [uid, uid]
    child = os.fork()
    if child == 0:
        arguments = {"into": volume, "owner": owner, "quota_bytes": quota_bytes, "quota_inodes": quota_inodes}
        worker.run("unpack", arguments)
    _, status = os.waitpid(child, 0)
    pathlib.Path(volume).chmod(0o700)  # whatever the home's own folder was archived with
    os._exit(0 if status == 0 else 1)


def give(volume: str, uid: int) -> None:
    """A home that is about to be started by another user, an image's own, becomes theirs."""
    root = pathlib.Path(volume)
    if root.stat().st_uid != uid:
        files.hand_over(root, uid, uid)
    _said({"code": 0})


def make(volume: str, uid: int) -> None:
    """A new home, with the files that come on standard input."""
    root = pathlib.Path(volume)
    for path, size, executable in json.loads(read_exactly(int(read_exactly(10)))):
        files.write_new(root, path, read_exactly(size), 0o755 if executable else 0o644)
    files.give_tree(root, uid, uid)
    root.chmod(0o700)
    files.sync_folder(root)
    _said({"code": 0})


def put(_volume: str) -> None:
    place.main(["1"])  # which is told the folder with the files


def measure(volume: str) -> None:
    measuring.main([volume])


JOBS: dict[str, Callable[..., None]] = {
    "pack": pack,
    "unpack": unpack,
    "give": give,
    "make": make,
    "put": put,
    "measure": measure,
}


def _said(outcome: dict[str, Any]) -> None:
    os.write(1, json.dumps(outcome).encode())


def _end_with_client() -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="client").start()


def main(arguments: list[str]) -> None:
    order = json.loads(arguments[0])
    volume = order.get("volume", VOLUME)
    if order.get("fresh"):
        pathlib.Path(volume).mkdir(mode=0o700, exist_ok=True)
    JOBS[order["job"]](volume, **order["arguments"])


if __name__ == "__main__":
    main(sys.argv[1:])
