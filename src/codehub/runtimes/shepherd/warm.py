"""A warm parent: a Python process with a program's modules loaded, which is copied (forked) instead of started anew.

Started by `runtimes.warm` with a clean environment and one socket, over which it is asked; it has no secret, no thread
and no event loop. Each question is a descriptor: a copy of this process takes it, becomes the shepherd of a workspace,
and inside of that one's sandbox the program itself (`become`). The parent reads nothing of what its copies are told. It
ends with the platform, after a time without questions, and when it is not fit: then starts are cold, and that is all.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and a program.
# ruff: noqa: PTH110, PTH123, PTH208

import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

from codehub.runtimes.shepherd import become, frozen, kernels, own_packages, stamps
from codehub.runtimes.shepherd import main as shepherd
from codehub.runtimes.shepherd.spec import Spec
from codehub.system import kernel

BEGUN = b"begun\n"
STALE = b"stale\n"
NAME = "codehub-warm"


@dataclass(frozen=True)
class WarmSpec:
    """What it is told, as JSON in an argument: nothing of it is secret."""

    preload: list[str]
    kernels: list[str]  # more to preload: what only kernels have; none: there are no kernels
    idle_seconds: float
    memory_bytes: int
    names: list[str]  # the workspace's and the user's under which modules are imported, spelled backwards: see `_names`


class UnfitError(Exception):
    """Copies of this process would not be the programs that they are to be."""


def main(arguments: list[str]) -> None:
    fd, told = int(arguments[0]), WarmSpec(**json.loads(arguments[1]))
    control = socket.socket(fileno=fd)
    kernel.set_name(NAME)
    with contextlib.suppress(OSError):  # an ordinary user cannot, and has the machine's name forgotten instead
        kernel.unshare(kernel.CLONE_NEWUTS)
        socket.sethostname(_names(told)[0])
    limits = _bound_memory(told.memory_bytes)
    absent, absent_for_kernels = Absent(), Absent()
    try:
        before = dict(os.environ)
        missing = _preload(told.preload, absent) + _preload(told.kernels, absent_for_kernels)
        variables = dict(os.environ.items() - before.items())
        loaded = kernels.Loaded(_stamps(), frozenset(absent.names | absent_for_kernels.names), variables)
        places = _fit(told, fd)
    except (UnfitError, MemoryError, OSError) as e:
        _say(control, {"unfit": str(e) or type(e).__name__})
        sys.exit(0)
    gc.freeze()  # what is shared with the copies is not written to by their garbage collectors
    _say(control, {"ready": True, "missing": missing})
    while select.select([control], [], [], told.idle_seconds)[0]:
        asked = _asked(control)
        if asked is None:
            break
        if _is_copy():
            control.close()
            resource.setrlimit(resource.RLIMIT_DATA, limits)
            _shepherd(asked, loaded, absent.names, places, told)
        os.close(asked)


def _bound_memory(memory_bytes: int) -> tuple[int, int]:
    """Only the limit that can be taken back. What it was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, hard))
    return soft, hard


class Absent:
    """Notes what modules would have used, had it been there. In a home it may be: then a copy is not the same."""

    def __init__(self) -> None:
        self.names = {"sitecustomize", "usercustomize"}  # those of a home are not looked for by a copy

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> None:
        if path is None:
            self.names.add(name)


def _preload(modules: list[str], absent: Absent) -> list[str]:
    """Those that are not there. A template may name what only some versions of its program have."""
    missing = []
    sys.meta_path.append(absent)  # the last who is asked
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
        except Exception as e:
            raise UnfitError(f"{name} cannot be imported: {type(e).__name__}: {e}"[:500]) from e
    sys.meta_path.remove(absent)
    return missing


def _stamps() -> bytes:
    """Of what is loaded, and of the folders where more would be found: changed, a copy would be outdated."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return stamps.of({path for path in [*files, *sys.path] if path})


def _fit(told: WarmSpec, control: int) -> frozen.Places:
    """Looks for all that would be another workspace's, or everybody's, in a copy."""
    if len(os.listdir("/proc/self/task")) != 1:
        raise UnfitError("importing starts threads, which copies do not have")
    opened = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, control}
    if any(os.path.exists(f"/proc/self/fd/{fd}") for fd in opened):
        raise UnfitError("importing leaves files open, which copies do not have")
    gc.collect()
    places = frozen.Places()
    places.find(_names(told))
    hear, tell = os.pipe()
    if not (probe := os.fork()):
        _try_on(places, _names(told), tell)
    os.close(tell)
    with open(hear, encoding="utf-8", errors="replace") as file:
        left = file.read()
    os.waitpid(probe, 0)
    if left:
        raise UnfitError(f"modules keep what was so when they were imported: {left}")
    return places


def _names(told: WarmSpec) -> tuple[str, ...]:
    """Where we keep them ourselves they must not be found."""
    return tuple(name[::-1] for name in told.names)


def _try_on(places: frozen.Places, names: tuple[str, ...], tell: int) -> NoReturn:
    """In a copy that is thrown away: does it forget the names under which its modules were imported?"""
    try:
        places.replace(dict.fromkeys(names, "tried"))
        become.renew({}, "/")
        os.write(tell, "; ".join(places.leftovers(names)).encode())
    except BaseException:  # noqa: BLE001 (whatever it is: such copies are not to be)
        os.write(tell, traceback.format_exc().encode()[-1000:])
    os._exit(0)


def _say(control: socket.socket, words: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the platform is gone, and so are we in a moment
        control.send(json.dumps(words).encode())


def _asked(control: socket.socket) -> int | None:
    """The descriptor of one question; None: nobody will ask any more."""
    _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    return descriptors[0] if descriptors else None


def _is_copy() -> bool:
    """True in a copy that belongs to no session and to no platform; the parent waits for nobody."""
    if between := os.fork():
        os.waitpid(between, 0)
        return False
    if os.fork():
        os._exit(0)
    return True


def _shepherd(asked: int, loaded: kernels.Loaded, absent: set[str], places: frozen.Places, told: WarmSpec) -> NoReturn:
    if stamps.changed(loaded.stamps):
        os.write(asked, STALE)
        os._exit(0)
    os.write(asked, BEGUN)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, place in ((asked, 0), (asked, 1), (nothing, 2)):
        os.dup2(fd, place)
    os.closerange(3, 64)
    kernel.set_name("python3")
    with open(0, "rb", closefd=False) as file:
        text = file.read()
    if not text:  # they thought better of it
        os._exit(0)
    spec = Spec.loads(text)
    if own_packages.change(spec.home, absent):
        os.write(1, json.dumps({"cold": "own_packages"}).encode())
        os._exit(0)
    own = dict(zip(_names(told), (spec.workspace_id, spec.user), strict=True))
    shepherd.run(spec, become.Becoming(places, own, functools.partial(kernels.offer, loaded if told.kernels else None)))
