"""JupyterLab's static files, compressed, in memory: made at first use, once a worker. Asked by `gate.lab_files`.

They are the same for all workspaces, and never change under one identity. In memory, because they are few and their
number is fixed: with everything a browser asks for that is about a megabyte, and nothing on disk has to be guarded.
"""

import asyncio
import gzip
import pathlib

import zstandard

from codehub.jupyter import identity

PLAIN, GZIP, ZSTD = "identity", "gzip", "zstd"
COMPRESSIBLE = {".css", ".eot", ".ico", ".js", ".json", ".svg", ".ttf", ".wasm"}
# Higher levels take ten times as long for a tenth less.
ZSTD_LEVEL, GZIP_LEVEL = 6, 6
AT_ONCE = 2  # files that are read and compressed, each in a thread


class SharedFiles:
    def __init__(self, folder: pathlib.Path) -> None:
        """Raises OSError where the folder cannot be read."""
        self.identity = identity.of(folder)
        self._folder = folder
        self._sizes = identity.files(folder)
        self._made: dict[tuple[str, str], asyncio.Task[bytes]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)

    def coding(self, name: str, accepted: str) -> str | None:
        """In which coding a client gets it; None: there is no such file."""
        if name not in self._sizes:
            return None
        return best_coding(accepted) if pathlib.PurePath(name).suffix in COMPRESSIBLE else PLAIN

    def ready(self, name: str, coding: str) -> bytes | None:
        """What was made already."""
        made = self._made.get((name, coding))
        done = made is not None and made.done() and not made.cancelled() and made.exception() is None
        return made.result() if made is not None and done else None

    async def body(self, name: str, coding: str) -> bytes | None:
        """None: it is not there any more, or not as it was."""
        making = self._made.get((name, coding))
        if making is None:
            making = self._made[name, coding] = asyncio.create_task(self._make(name, coding))
        try:
            return await asyncio.shield(making)  # also when this client leaves: the next one asks for it, too
        except OSError:
            self._made.pop((name, coding), None)
            return None

    async def _make(self, name: str, coding: str) -> bytes:
        async with self._turn:
            return await asyncio.to_thread(_compressed, self._folder / name, self._sizes[name], coding)


def best_coding(accepted: str) -> str:
    """From `Accept-Encoding`. Pure."""
    weights = {}
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        weights[name.strip()] = _weight(weight)
    others = weights.get("*", 0.0)
    return next((coding for coding in (ZSTD, GZIP) if weights.get(coding, others) > 0), PLAIN)


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


def _compressed(path: pathlib.Path, size: int, coding: str) -> bytes:
    with path.open("rb") as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise OSError(f"{path} has changed")
    if coding == ZSTD:
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
    return gzip.compress(data, GZIP_LEVEL, mtime=0) if coding == GZIP else data
