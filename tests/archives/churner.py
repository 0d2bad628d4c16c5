"""A program that changes a home as fast as it can, in every way that a program in it could. `python churner.py HOME`.

Says `ready` when the home is full, and goes on until it is killed. Started by root it gives up all rights first, as a
program in a workspace has none: it follows its own links, and those lead nowhere but into the home.
"""

import contextlib
import ctypes
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
UID = 64_999  # of nobody on this machine
NAMES = [f"n{number}" for number in range(12)]


def some(home: Path) -> Path:
    return home.joinpath(*random.choices(NAMES, k=random.choice((1, 1, 2, 2, 3))))


def opened(path: Path, how: int = os.O_TRUNC) -> IO[bytes]:
    """Without waiting at a pipe, and without following a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | how
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def write(path: Path) -> None:
    with opened(path) as file:
        file.write(os.urandom(random.choice((0, 10, 5_000, 2_000_000))))


def sparse(path: Path) -> None:
    with opened(path) as file:
        for _ in range(20):
            file.seek(random.randrange(4_000_000))
            file.write(b"data")
        file.truncate(random.randrange(5_000_000))


def truncate(path: Path) -> None:
    with opened(path, 0) as file:
        file.truncate(random.randrange(3_000_000))


def grow(path: Path) -> None:
    with opened(path, os.O_APPEND) as file:
        for _ in range(50):
            file.write(bytes(40_000))


def replace_by_link(path: Path) -> None:
    remove(path)
    path.symlink_to(random.choice(("n1", "n2", "nowhere")))


def replace_by_pipe(path: Path) -> None:
    remove(path)
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    remove(path)
    path.mkdir()
    for name in NAMES[:5]:
        (path / name).write_bytes(b"in a folder")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def close(path: Path) -> None:
    path.chmod(random.choice((0o000, 0o600, 0o700)))


def attributes(path: Path) -> None:
    os.setxattr(path, f"user.{random.choice(NAMES)}", os.urandom(random.randrange(200)))
    for name in os.listxattr(path):
        os.removexattr(path, name)


ALONE = (
    write, sparse, truncate, grow, replace_by_link, replace_by_pipe, replace_by_folder, remove, close, attributes,
)  # fmt: skip


def churn(home: Path) -> None:
    while True:
        with contextlib.suppress(OSError, shutil.Error):
            path, other = some(home), some(home)
            match random.randrange(14):
                case 0 | 1:
                    path.rename(other)
                case 2:
                    os.link(path, other)
                case number:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    ALONE[number % len(ALONE)](path)


def go_deep(home: Path) -> None:
    """A tree that is deeper than a walk keeps open, and that moves while the walk is at its bottom."""
    while True:
        with contextlib.suppress(OSError):
            deep = home / "deep"
            deep.joinpath(*["d"] * 100).mkdir(parents=True, exist_ok=True)
            (deep / "d" / "d").rename(home / "elsewhere")
            shutil.rmtree(home / "elsewhere", ignore_errors=True)


def flip(home: Path) -> None:
    """Links that are files a moment later, and folders that are gone."""
    while True:
        with contextlib.suppress(OSError):
            for number in range(40):
                path = home / f"flip{number:02}"
                path.unlink(missing_ok=True)
                path.symlink_to("nowhere")
                (home / f"gone{number:02}").mkdir(exist_ok=True)
                path.unlink()
                path.write_bytes(b"a file")
                (home / f"gone{number:02}").rmdir()


def give_up_rights() -> None:
    """As the owner of the home, where that is not root."""
    if os.geteuid() == 0:
        owner = Path().stat().st_uid or UID
        os.chown(".", owner, owner)
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
    assert os.geteuid() != 0


def main(home: Path) -> None:
    os.chdir(home)  # what is above it may be closed
    give_up_rights()
    home = Path()
    for _ in range(300):
        with contextlib.suppress(OSError):
            path = some(home)
            path.parent.mkdir(parents=True, exist_ok=True)
            random.choice((write, sparse, replace_by_folder))(path)
    for work in (churn, go_deep, flip):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            work(home)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
