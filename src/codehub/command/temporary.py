"""The API for a single command, while nothing serves here: so that there is one way to act, whether or not it runs.

A copy of this process serves it, together with the servers if they are ours to start, until the command has ended.
Called by `client`; what is served comes from `cli`, which stands above everything.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from codehub import logs
from codehub.errors import CodeHubError, StartError
from codehub.settings import Settings

log = logs.get()
# Serves until the other end of the second socket is closed, and calls the function when it can.
Serve = Callable[[Settings, socket.socket, socket.socket, Callable[[], None]], None]
serve: Serve | None = None  # set by `cli`


@contextlib.contextmanager
def api(settings: Settings, work: Serve) -> Iterator[pathlib.Path]:
    """The path of its socket."""
    # Not below TMPDIR: a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="codehub-", dir="/tmp") as folder:
        path = pathlib.Path(folder) / "api.sock"
        ours, theirs = socket.socketpair()
        with ours, theirs, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            child = os.fork()
            if child == 0:
                ours.close()
                _live(settings, work, listener, theirs)
            theirs.close()
            listener.close()
            try:
                _await_ready(ours)
                yield path
            finally:
                ours.close()
                os.waitpid(child, 0)  # then the data directory is free again


def _await_ready(ours: socket.socket) -> None:
    told = json.loads(ours.makefile("rb").readline() or b"{}")
    if not told.get("ready"):
        raise StartError(told.get("detail", "the API could not be started; the lines above say why"))


def _live(settings: Settings, work: Serve, listener: socket.socket, theirs: socket.socket) -> NoReturn:
    """In the copy. Ctrl-C is the command's own: it ends, and so do we."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        listener.setblocking(False)
        theirs.setblocking(False)
        work(settings, listener, theirs, lambda: _tell(theirs, ready=True))
        code = 0
    except CodeHubError as e:
        _tell(theirs, detail=e.detail)
    except BaseException:  # whatever it is, it is said once, here
        log.exception("The API for this command failed")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell(theirs: socket.socket, **words: Any) -> None:
    with contextlib.suppress(OSError):  # the command has gone
        theirs.send(json.dumps(words).encode() + b"\n")
