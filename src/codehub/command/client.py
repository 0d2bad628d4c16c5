"""The command line's client of the REST API, on the operator's socket. Used by the `cli` modules of capabilities.

Only what the standard library has: a command is there for a moment, and most of that would be loading.
"""

import contextlib
import http.client
import json
import os
import pathlib
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from codehub import logs
from codehub.command import operator_name, output, temporary
from codehub.embedded.datadir import DataDir
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError, StartError
from codehub.invocation import command
from codehub.settings import Settings
from codehub.startup import load_settings

PREFIX = "/api/v1"
ANSWER_SECONDS = 90.0
PAGE = 200  # as many as the API gives at once
PIECE = 256 * 1024


class ApiError(CodeHubError):
    """A problem of the API's, as it came."""

    def __init__(self, problem: dict[str, Any]) -> None:
        known = {"type", "title", "status", "detail", "code"}
        super().__init__(str(problem.get("detail")), **{k: v for k, v in problem.items() if k not in known})
        self.code = str(problem.get("code"))  # type: ignore[misc]
        self.status = int(problem.get("status", 500))  # type: ignore[misc]
        self.title = str(problem.get("title"))  # type: ignore[misc]


class NotRunningError(StartError):
    code = "NOT_RUNNING"
    status = 503
    title = "CodeHub does not run here"


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Api:
    """Each call is one request. `path`: the words of the path below `/api/v1`; each is quoted."""

    def __init__(self, path: pathlib.Path, url: str) -> None:
        self.url = url  # where people reach the platform
        self._path = path
        self._headers = {
            "Host": urlsplit(url).netloc,  # what links in answers begin with
            "Accept": "application/json",
            "Accept-Language": _language(),
            "Codehub-Operator": quote(operator_name()),
        }

    def get(self, *path: str, **query: Any) -> Any:
        return self._call("GET", path, query)

    def find(self, *path: str) -> Any:
        """None: there is no such thing."""
        try:
            return self.get(*path)
        except ApiError as e:
            if e.code != NotFoundError.code:
                raise
            return None

    def post(self, *path: str, **body: Any) -> Any:
        return self._call("POST", path, {}, body)

    def post_list(self, *path: str, content: bytes, **query: Any) -> Any:
        """A file of the teacher's, as it is."""
        return self._call("POST", path, query, content)

    def put(self, *path: str, **body: Any) -> Any:
        return self._call("PUT", path, {}, body)

    def patch(self, *path: str, **body: Any) -> Any:
        return self._call("PATCH", path, {}, body)

    def delete(self, *path: str, **query: Any) -> Any:
        return self._call("DELETE", path, query)

    def items(self, *path: str, **query: Any) -> list[dict[str, Any]]:
        """Every item of a list, from all its pages."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.get(*path, **query, limit=PAGE, cursor=cursor)
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    @contextlib.contextmanager
    def stream(self, *path: str, timeout: float | None = None, **query: Any) -> Iterator[http.client.HTTPResponse]:
        """An answer that is read piece by piece, with `pieces`."""
        with self._request("GET", path, query, None, timeout) as answer:
            yield answer

    def _call(self, method: str, path: tuple[str, ...], query: dict[str, Any], body: Any = None) -> Any:
        with self._request(method, path, query, body, ANSWER_SECONDS) as answer, _whole():
            content = answer.read()
        return json.loads(content) if content else None

    @contextlib.contextmanager
    def _request(
        self, method: str, path: tuple[str, ...], query: dict[str, Any], body: Any, timeout: float | None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _Connection(self._path, timeout)
        headers, content = dict(self._headers), None
        if isinstance(body, bytes):
            headers["Content-Type"], content = "text/csv", body
        elif body is not None:
            headers["Content-Type"], content = "application/json", json.dumps(body).encode()
        try:
            with _whole():
                connection.request(method, _target(path, query), content, headers)
                answer = connection.getresponse()
                if answer.status >= http.HTTPStatus.BAD_REQUEST:
                    raise ApiError(_problem(answer))
            yield answer
        finally:
            connection.close()


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Around what is said to the API and read from it: what is printed meanwhile may break for other reasons."""
    try:
        yield
    except (OSError, http.client.HTTPException) as e:
        raise CodeHubError(f"CodeHub broke off before it had answered ({str(e) or type(e).__name__}): try again") from e


def _language() -> str:
    """Of the shell's messages, as `ko_KR.UTF-8` says it."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "en")
    return named.partition(".")[0].replace("_", "-")


def pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """As they come; a broken answer raises instead of ending."""
    while True:
        with _whole():
            piece = answer.read1(PIECE)
        if not piece:
            return
        yield piece


def _target(path: tuple[str, ...], query: dict[str, Any]) -> str:
    if wrong := [word for word in path if not word or "/" in word]:  # no name and no id has one
        raise InvalidRequestError("must be one word without a slash", field=wrong[0] or "name")
    words = "/".join(quote(word, safe="", errors="surrogateescape") for word in path)
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    asked = urlencode({name: value for name, value in given.items() if value is not None}, errors="surrogateescape")
    return f"{PREFIX}/{words}" + (f"?{asked}" if asked else "")


def _problem(answer: http.client.HTTPResponse) -> dict[str, Any]:
    try:
        found = json.loads(answer.read())
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(error := found.get("error"), dict):  # the waiting room's shape
        found = {"title": answer.reason, "status": answer.status, "detail": error.get("message"), **error}
        del found["message"]
    if isinstance(found, dict) and "detail" in found:
        return found
    return {"title": answer.reason, "status": answer.status, "code": "INTERNAL", "detail": answer.reason}


@contextlib.contextmanager
def connected(*, running: bool = False) -> Iterator[Api]:
    """The API of what runs here; otherwise one for as long as the command takes.

    `running`: the command waits for what only a running platform does. With servers of the operator's own, parts of it
    may run elsewhere; with ours, it is this one or none.
    """
    settings = load_settings("cli")
    if output.as_json:  # what a program reads on standard error is the problem
        settings = replace(settings, log=replace(settings.log, level="error"))
        logs.configure(settings.log, "cli")
    data = DataDir(settings.storage.data_dir)
    url = reached_at(settings)
    if _answers(data.operator_socket):
        yield Api(data.operator_socket, url)
        return
    if temporary.serve is None or (running and not (settings.storage.database_url and settings.storage.redis_url)):
        raise NotRunningError(
            f"CodeHub does not run on {data.root}: start it with `{command('serve')}`, then repeat this"
        )
    with temporary.api(settings, temporary.serve) as path:
        yield Api(path, url)


def _answers(path: pathlib.Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(str(path))
    except PermissionError as e:
        raise StartError(f"{path} may not be used: run this as the user that runs CodeHub, or with sudo") from e
    except OSError:
        return False
    return True


def reached_at(settings: Settings) -> str:
    """The address for links: the public one, else that of the instance that runs or ran last, else the settings'."""
    server = settings.server
    noted = DataDir(settings.storage.data_dir).noted_url()
    return (server.public_url or noted or f"http://{server.host}:{server.port}").rstrip("/")
