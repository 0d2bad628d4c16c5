"""A real git server: `git http-backend` behind TLS on this machine, with a repository that tests may hold up."""

import contextlib
import http.server
import os
import pathlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

CAN_SERVE = all(map(shutil.which, ("git", "openssl")))
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")


@dataclass
class GitServer:
    folder: pathlib.Path
    url: str = ""
    requests: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)  # set: answers are given
    broken: bool = False  # answers 500

    @property
    def hello(self) -> str:
        return f"{self.url}/hello.git"

    @property
    def home(self) -> dict[str, bytes]:
        """What a home needs to trust it."""
        settings = "[http]\n\tsslCAInfo = ~/.git-ca.pem\n"
        return {".gitconfig": settings.encode(), ".git-ca.pem": (self.folder / "ca.pem").read_bytes()}

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        size = int(request.headers.get("content-length") or 0)
        body = request.rfile.read(size)
        if request.path.startswith("/slow") and not self.held.wait(120):
            return
        if request.path.startswith("/private"):
            _say(request, 401, {"WWW-Authenticate": 'Basic realm="private"'})
            return
        if self.broken:
            _say(request, 500, {})
            return
        path, _, query = request.path.removeprefix("/slow").partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder / "served"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(size),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": "1",  # the folder is another user's where tests run as one
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        _say(request, int(headers.pop("Status", "200").split()[0]), headers, content)


def _say(request: http.server.BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def make(folder: pathlib.Path) -> None:
    """A certificate, and a repository with two branches."""
    work, served = folder / "work", folder / "served"
    served.mkdir()
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
    ]
    request += ["2", "-subj", "/CN=git", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    run = [[*request, *files], [*GIT, "init", "-q", str(work)]]
    run += [["sh", "-c", f"echo hello > {work}/README && mkdir {work}/src && echo 1 > {work}/src/a.py"]]
    at = [*GIT, "-C", str(work)]
    run += [[*at, "add", "."], [*at, "commit", "-q", "-m", "first"], [*at, "checkout", "-q", "-b", "week/2"]]
    run += [["sh", "-c", f"echo week 2 > {work}/README"], [*at, "commit", "-q", "-a", "-m", "second"]]
    run += [[*at, "checkout", "-q", "main"], [*GIT, "clone", "-q", "--bare", str(work), str(served / "hello.git")]]
    for command in run:
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(folder)})


@contextlib.contextmanager
def git_server(folder: pathlib.Path) -> Iterator[GitServer]:
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    server = GitServer(folder)
    server.held.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):  # who asked has gone
                server.answer(self)

        do_POST = do_GET  # noqa: N815 (so it is called)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    web.socket = context.wrap_socket(web.socket, server_side=True, do_handshake_on_connect=False)
    server.url = f"https://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.held.set()
        web.shutdown()
        web.server_close()
