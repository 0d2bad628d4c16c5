"""The process that packs or unpacks one home. `process` starts it; it does one thing and ends.

Apart from the coordinator because it is busy (the event loop stays free), because it reads what may be hostile (it
has no credentials and no connection), and because a process can be stopped at once, whatever it is doing. The archive
goes through stdin or stdout; reports go to stderr, one JSON object a line.
"""

import contextlib
import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NoReturn

from codehub.archives import compress
from codehub.archives.model import ArchiveError, Quota, SourceChangedError
from codehub.archives.pack import OutputError, Packer, open_home
from codehub.archives.unpack import Unpacker
from codehub.archives.walk import DIRECTORY_FLAGS
from codehub.system import kernel

TICK_SECONDS = 0.3
OUTPUT_CLOSED = "the reader of the archive has closed it"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def report(**values: Any) -> None:
    os.write(2, json.dumps(values).encode() + b"\n")


def pack(source: str, live: bool, gzip: bool) -> None:
    root, original_mode = open_home(source)
    scanner = _start_scanner(root)
    with _output(gzip) as compressed:
        packer = Packer(compressed.write, live=live)
        _tick(lambda: report(progress=packer.done.bytes))
        done = packer.run(root, original_mode)
    os.kill(scanner, signal.SIGKILL)
    os.waitpid(scanner, 0)
    report(result=asdict(done))


def recompress() -> None:
    """An archive as it is stored, as gzip, which every system can open."""
    with open(0, "rb", buffering=0, closefd=False) as compressed, _output(gzip=True) as output:
        source = compress.Decompressed(compressed)
        for chunk in source.chunks():
            output.write(chunk)
        while compressed.read(compress.CHUNK):  # its sender compares it with its checksum, to its end
            pass
    report(result={})


@contextlib.contextmanager
def _output(gzip: bool) -> Iterator[Any]:
    with (
        open(1, "wb", buffering=compress.CHUNK if gzip else 0, closefd=False) as output,
        compress.gzipped(output) if gzip else compress.compressor(output) as compressed,
    ):
        yield compressed


def unpack(into: str, owner: list[int] | None, quota_bytes: int, quota_inodes: int) -> None:
    root = os.open(into, DIRECTORY_FLAGS)
    if os.listdir(root):  # noqa: PTH208 - by descriptor, which pathlib has not
        raise ArchiveError("the directory to unpack into is not empty")
    keep = os.dup(root)
    os.umask(0)  # a file is created with the very mode it keeps
    with open(0, "rb", buffering=0, closefd=False) as compressed:
        source = compress.Decompressed(compressed)
        unpacker = Unpacker(source, (owner[0], owner[1]) if owner else None, Quota(quota_bytes, quota_inodes))
        _tick(lambda: report(progress=unpacker.done.bytes))
        # The disk works while we do, instead of after us. Opened anew: an error is told once to each who opened,
        # and the one who has to hear of it is `_sync`.
        beside = os.open(into, DIRECTORY_FLAGS)
        _tick(lambda: _begin_to_sync(beside))
        done = unpacker.run(root)
        source.finish()
    _sync(keep)
    report(result=asdict(done))


JOBS: dict[str, Callable[..., None]] = {"pack": pack, "unpack": unpack, "recompress": recompress}


def _sync(fd: int) -> None:
    """The home is swapped in as a whole when we return; a power cut after that must not find empty files in it."""
    try:
        kernel.sync_file_system(fd)
    except OSError as e:
        raise OSError(e.errno, "the file system could not be brought to disk") from e


def _begin_to_sync(fd: int) -> None:
    with contextlib.suppress(OSError):  # `_sync` is told as well
        kernel.sync_file_system(fd)


def _tick(work: Callable[[], object]) -> None:
    """A few times a second, beside everything else."""

    def loop() -> None:
        waiting = threading.Event()
        while not waiting.wait(TICK_SECONDS):
            work()

    threading.Thread(target=loop, daemon=True, name="tick").start()


def _start_scanner(root: int) -> int:
    """Add up the total in a process beside us, when a core has nothing else to do.

    Counting first would cost a fifth of the time. Where there is no time to spare, the total stays unknown.
    """
    child = os.fork()
    if child:
        return child
    try:
        _die_with_parent()
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        report(total=_total(root))
    finally:
        os._exit(0)


def _total(root: int) -> int:
    """Bytes of content, as far as can be seen; what vanishes meanwhile is the packer's business."""
    # Opened anew: a copy of the descriptor would share its place in the listing with the packer's.
    total, waiting = 0, [os.open(".", DIRECTORY_FLAGS, dir_fd=root)]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as found:
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    waiting.append(os.open(item.name, DIRECTORY_FLAGS, dir_fd=folder))
                elif item.is_file(follow_symlinks=False):
                    status = item.stat(follow_symlinks=False)
                    total += min(status.st_size, status.st_blocks * 512)
        os.close(folder)
    return total


def _die_with_parent() -> None:
    """A coordinator that is killed takes its workers along: none writes on beside its successor."""
    parent = os.getppid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run_for(parent: int, job: str, arguments: dict[str, Any]) -> None:
    _die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    # An interrupt from the terminal is the coordinator's to handle. A group of our own, not a session: the kernel lets
    # sessions wait for each other, and the reader of our pipe would be late for a quarter of the time.
    os.setpgid(0, 0)
    run(job, arguments)


def run(job: str, arguments: dict[str, Any]) -> NoReturn:
    """To the end of this process. Also called where a container of ours has one home (`runtimes.containers.job`)."""
    try:
        JOBS[job](**arguments)
    except ArchiveError as e:
        report(error=type(e).__name__, detail=e.detail)
    except OutputError as e:
        taken = not isinstance(e.cause, BrokenPipeError)
        report(error=ArchiveError.__name__, detail=_detail(e.cause, job) if taken else OUTPUT_CLOSED)
    except BrokenPipeError:
        report(error=ArchiveError.__name__, detail=OUTPUT_CLOSED)
    except OSError as e:
        changed = job == "pack" and e.errno in {errno.ELOOP, errno.ENXIO}  # became a link, or a pipe, since it was seen
        kind = SourceChangedError if changed else ArchiveError
        report(error=kind.__name__, detail=_detail(e, job))
    except ValueError as e:  # a name too long to be written down
        report(error=ArchiveError.__name__, detail=str(e))
    else:
        os._exit(0)  # at once: threads may still hold a pipe, and there is nothing left to tidy
    os._exit(1)


def _detail(error: OSError, job: str) -> str:
    full = "the disk is full: " if error.errno in _DISK_FULL else ""
    return f"{full}{error.strerror or error} ({job})"


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    _run_for(order["parent"], order["job"], order["arguments"])
