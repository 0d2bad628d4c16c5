"""The `terminal` template's program: a shell in the browser, on a Unix socket. Runs inside a workspace, as its user.

One shell per name; closing the page leaves it running, and coming back finds it as it was. Shell and WebSocket are
terminado's, xterm.js is the copy that JupyterLab carries: nothing is fetched from anywhere.
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import re
import signal
from importlib.util import find_spec

import tornado.httpserver
import tornado.netutil
import tornado.web
from terminado.management import NamedTermManager
from terminado.websocket import TermSocket

STATIC = pathlib.Path(__file__).parent / "terminal_static"
# How to recognise the two scripts among JupyterLab's: by what they must contain, not by names that change.
XTERM, FIT = b".Terminal=", b".FitAddon="
LARGEST_PIECE = 1_000_000
NAME = r"([a-z0-9-]{1,32})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="codehub-terminal")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--base", default="/")
    given = parser.parse_args()
    asyncio.run(serve(given.socket, given.base))


async def serve(path: str, base: str) -> None:
    shells = NamedTermManager(shell_command=[os.environ.get("SHELL", "/bin/sh"), "-l"], max_terminals=32)
    server = tornado.httpserver.HTTPServer(application(base, shells))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    server.add_socket(tornado.netutil.bind_unix_socket(path, mode=0o660))
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    server.stop()
    await shells.kill_all()


def application(base: str, shells: NamedTermManager) -> tornado.web.Application:
    xterm, fit = scripts()
    texts = {"xterm.js": xterm, "fit.js": fit}
    at = re.escape(base.rstrip("/"))
    return tornado.web.Application(
        [
            (rf"{at}/healthz", Healthy),
            (rf"{at}/ws/{NAME}", TermSocket, {"term_manager": shells}),
            (rf"{at}/(xterm\.js|fit\.js)", Script, {"texts": texts}),
            (rf"{at}/(.*)", tornado.web.StaticFileHandler, {"path": STATIC, "default_filename": "index.html"}),
        ],
        websocket_ping_interval=30,
        compress_response=True,
    )


def scripts() -> tuple[bytes, bytes]:
    """The files of JupyterLab's pages that hold xterm.js and its fitting add-on, and nothing else."""
    found = find_spec("jupyterlab")
    if found is None or found.origin is None:
        raise SystemExit("JupyterLab, whose copy of xterm.js is used, is not installed")
    xterm = fit = b""
    for path in sorted((pathlib.Path(found.origin).parent / "static").glob("*.js")):
        if path.stat().st_size <= LARGEST_PIECE:
            text = path.read_bytes()
            xterm = text if XTERM in text and b"xterm-helper-textarea" in text else xterm
            fit = text if FIT in text and b"proposeDimensions" in text else fit
    if not xterm or not fit:
        raise SystemExit("this JupyterLab carries no xterm.js that can be used alone")
    return xterm, fit


class Healthy(tornado.web.RequestHandler):
    def get(self) -> None:
        self.write("ok\n")


class Script(tornado.web.RequestHandler):
    def initialize(self, texts: dict[str, bytes]) -> None:
        self._texts = texts

    def get(self, name: str) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=3600")
        self.write(self._texts[name])


if __name__ == "__main__":
    main()
