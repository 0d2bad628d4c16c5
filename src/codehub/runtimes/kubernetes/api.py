"""The cluster's API: calls and watches, in one namespace. Used below `kubernetes`.

By aiohttp, which the platform has anyway: a client for all of the API would take longer to import than a workspace to
start. Nothing here is newer than Kubernetes 1.20 or gone since.
"""

import base64
import contextlib
import json
import os
import pathlib
import socket
import ssl
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from codehub.clock import Clock
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.config import RuntimeConfig

CALL_SECONDS = 30.0
WATCH_SECONDS = 290  # then it is asked for anew, where it ended
LONGEST_LINE = 16 << 20
TOKEN_SECONDS = 60.0  # that a service account's token is remembered: the cluster replaces it
SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
# Of a connection on which nothing comes: how long until the other side is called dead.
KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
UNACKNOWLEDGED_MS = 20_000
MERGE = "application/merge-patch+json"
Object = dict[str, Any]


class ApiError(RuntimeFailureError):
    """The API refuses: its own words."""

    def __init__(self, status: int, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.answer = status  # HTTP; `status` is what our own clients get
        self.reason = reason


class ApiUnreachableError(RuntimeFailureError):
    code = "Unreachable"


@dataclass(frozen=True)
class Access:
    """Where the API is, and how we may use it."""

    url: str
    namespace: str
    tls: ssl.SSLContext | None
    token: str = ""
    token_file: pathlib.Path | None = None

    @classmethod
    def of(cls, config: RuntimeConfig) -> Self:
        """By a kubeconfig where one is named, else by the service account of the pod that we are in."""
        if config.kubernetes_config:
            return cls._of_file(pathlib.Path(config.kubernetes_config), config.kubernetes_namespace)
        return cls._of_pod(config.kubernetes_namespace)

    @classmethod
    def _of_pod(cls, namespace: str) -> Self:
        host, port = (os.environ.get(name, "") for name in IN_CLUSTER)
        if not (host and port and (SERVICE_ACCOUNT / "token").exists()):
            raise ApiUnreachableError(
                "this is no pod with a service account: set CODEHUB_KUBERNETES_CONFIG to the path of a kubeconfig"
            )
        tls = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
        own = namespace or (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
        where = f"[{host}]" if ":" in host else host
        return cls(f"https://{where}:{port}", own, tls, token_file=SERVICE_ACCOUNT / "token")

    @classmethod
    def _of_file(cls, file: pathlib.Path, namespace: str) -> Self:
        import yaml  # noqa: PLC0415 (only for a kubeconfig)

        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            named = {
                kind: {one["name"]: one[kind] for one in content[f"{kind}s"]} for kind in ("cluster", "user", "context")
            }
            context = named["context"][content["current-context"]]
            cluster, user = named["cluster"][context["cluster"]], named["user"][context["user"]]
            tls = _tls(cluster, user, file.parent) if cluster["server"].startswith("https:") else None
        except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as e:
            raise ApiUnreachableError(f"the kubeconfig {file} cannot be used: {type(e).__name__}: {e}") from e
        space = namespace or context.get("namespace", "default")
        token_file = pathlib.Path(file.parent, user["tokenFile"]) if "tokenFile" in user else None
        return cls(cluster["server"].rstrip("/"), space, tls, user.get("token", ""), token_file)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], beside: pathlib.Path) -> ssl.SSLContext:
    authority = _given(cluster, "certificate-authority", beside)
    tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        raise ValueError("insecure-skip-tls-verify is not accepted")
    certificate, key = (_given(user, name, beside) for name in ("client-certificate", "client-key"))
    if certificate and key:
        with tempfile.NamedTemporaryFile() as both:  # the library reads files only; nobody else may read this one
            both.write(certificate + b"\n" + key)
            both.flush()
            tls.load_cert_chain(both.name)
    return tls


def _given(values: Mapping[str, Any], name: str, beside: pathlib.Path) -> bytes:
    if data := values.get(f"{name}-data"):
        return base64.b64decode(data)
    return (beside / values[name]).read_bytes() if name in values else b""


def objects(plural: str, name: str = "") -> str:
    """Of the core group: a path below the namespace."""
    return f"{plural}/{quote(name, safe='')}" if name else plural


class Api:
    def __init__(self, access: Access, clock: Clock) -> None:
        self.access = access
        self._clock = clock
        self.namespace = access.namespace
        self._session: aiohttp.ClientSession | None = None
        self._token: tuple[float, str] = (0.0, access.token)

    async def call(
        self, method: str, where: str, body: object = None, *, missing: bool = False, **parameters: str
    ) -> Any:
        """What the API answers; with `missing`, None for what is not there."""
        kind = MERGE if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body)
        limit = aiohttp.ClientTimeout(total=CALL_SECONDS)
        async with self._asked(method, where, limit, parameters, data=data, kind=kind) as answer:
            if answer.status == 404 and missing:
                return None
            return await _content(answer)

    async def watch(self, where: str, **parameters: str) -> AsyncGenerator[Object, None]:
        """Events, as they come, until the API ends it; first an empty one, which says that it has begun."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CALL_SECONDS, sock_read=WATCH_SECONDS + CALL_SECONDS)
        asked = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_SECONDS), **parameters}
        async with self._asked("GET", where, limit, asked) as answer:
            if answer.status >= 400:
                await _content(answer)
            yield {}
            left = b""
            async for content in answer.content.iter_any():
                *lines, left = (left + content).split(b"\n")
                if len(left) > LONGEST_LINE:
                    raise ApiUnreachableError("the cluster's API sends an event without end")
                for line in lines:
                    yield json.loads(line)

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    @contextlib.asynccontextmanager
    async def _asked(
        self,
        method: str,
        where: str,
        limit: aiohttp.ClientTimeout,
        parameters: Mapping[str, str],
        *,
        data: str | None = None,
        kind: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url = f"{self.access.url}{where if where.startswith('/') else f'/api/v1/namespaces/{self.namespace}/{where}'}"
        headers = {"Content-Type": kind, "Accept": "application/json", **self._authorization()}
        try:
            async with self._opened().request(
                method, url, params=parameters, data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as answer:
                yield answer
        except (aiohttp.ClientError, ValueError) as e:
            raise self._unreachable(e) from e
        except TimeoutError as e:
            raise ApiUnreachableError(
                f"the cluster's API did not answer within {limit.total or CALL_SECONDS:g} s"
            ) from e

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self.access.tls or True, limit=0, socket_factory=_watched_socket)
            self._session = aiohttp.ClientSession(connector=connector, read_bufsize=1 << 20)
        return self._session

    def _authorization(self) -> dict[str, str]:
        now, file = self._clock.monotonic(), self.access.token_file
        if file and (not self._token[1] or now - self._token[0] > TOKEN_SECONDS):
            self._token = now, file.read_text(encoding="ascii").strip()
        return {"Authorization": f"Bearer {self._token[1]}"} if self._token[1] else {}

    def _unreachable(self, error: Exception) -> ApiUnreachableError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ApiUnreachableError(f"the cluster's API does not answer on {self.access.url} ({reason})")


def _watched_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    """A cluster that has gone without a word is noticed, also where we only listen."""
    family, kind, protocol, *_ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (*KEEP_ALIVE, (socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)):
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


async def _content(answer: aiohttp.ClientResponse) -> Any:
    raw = await answer.read()
    if answer.status >= 400:
        said = _status(raw)
        detail = said.get("message") or f"the cluster's API answers {answer.status}"
        raise ApiError(answer.status, said.get("reason", ""), detail)
    return json.loads(raw)


def _status(raw: bytes) -> dict[str, str]:
    try:
        said = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace").strip()[:500]}
    return {name: str(said[name]) for name in ("message", "reason") if said.get(name)}
