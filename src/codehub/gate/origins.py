"""An origin for every workspace, so that one's pages cannot act as the visitor of another, or of the platform. Pure.

The proxy asks which workspace a `Host` belongs to; the API makes the addresses. Three ways: a domain of the operator's
(`CODEHUB_WORKSPACE_DOMAIN`), names below `localhost` when the platform is on loopback, or none.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from codehub import ids
from codehub.errors import SettingsError
from codehub.hostnames import LOCALHOST, is_loopback, split
from codehub.settings import Settings


@dataclass(frozen=True)
class Origins:
    domain: str | None  # below which every workspace has a name; None: they share the platform's origin
    public_url: str | None
    scheme: str
    port: str = ""  # of the domain, when it is not the usual one; below `localhost` it is the request's own
    platform: str = LOCALHOST  # the platform's own name on loopback, as `serve` prints it

    @property
    def isolated(self) -> bool:
        return self.domain is not None

    def workspace_of(self, host: str) -> str | None:
        """The workspace whose origin this `Host` is; None for the platform's own."""
        name = split(host)[0]
        if self.domain is None or not name.endswith(f".{self.domain}"):
            return None
        return name[: -len(self.domain) - 1]

    def of_workspace(self, id_: str, host: str) -> str | None:
        """`http://id.localhost:8000` for a client that reached the platform by this `Host`; None: it has none."""
        if self.domain is None:
            return None
        port = split(host)[1] if self.domain == LOCALHOST else self.port
        return f"{self.scheme}://{id_}.{self.domain}{port}"

    def of_platform(self, host: str, wanted: str = "") -> str:
        """Where the dashboard is, for a client on a workspace's origin. `wanted` is what it came from, if allowed."""
        if self.public_url:
            return self.public_url.rstrip("/")
        port = split(host)[1]
        name = split(wanted)[0] if wanted and split(wanted)[1] == port else self.platform
        return f"{self.scheme}://{name if is_loopback(name) else self.platform}{port}"

    def frames(self, host: str) -> tuple[str, ...]:
        """The platform's origins whose pages may show this workspace's in a frame."""
        if self.public_url:
            found = urlsplit(self.public_url)
            return (f"{found.scheme}://{found.netloc}",)
        return tuple(f"{self.scheme}://{name}{split(host)[1]}" for name in (LOCALHOST, "127.0.0.1", "[::1]"))

    def frame(self, host: str) -> str | None:
        """The origin of a page that was asked for at this `Host`, where it can show workspaces in a frame.

        Browsers keep cookies in a frame only where they hold the connection for safe: with TLS, or on this machine.
        """
        here = f"{self.scheme}://{host.lower()}"
        safe = self.scheme == "https" or is_loopback(split(host)[0])
        return here if self.isolated and safe and here in self.frames(host) else None

    @property
    def sources(self) -> str:
        """All of them, as a content security policy says it."""
        if self.domain is None:
            return ""
        return f"{self.scheme}://*.{self.domain}{':*' if self.domain == LOCALHOST else self.port}"


def of(settings: Settings) -> Origins:
    server = settings.server
    scheme = "https" if settings.secure else "http"
    if server.workspace_domain:
        if not server.public_url:
            raise SettingsError("CODEHUB_WORKSPACE_DOMAIN needs CODEHUB_PUBLIC_URL: where people log in")
        name, port = split(server.workspace_domain)
        if not name or not all(map(ids.is_label, name.split("."))):
            raise SettingsError(
                f"CODEHUB_WORKSPACE_DOMAIN={server.workspace_domain}: not a domain like labs.example.org"
            )
        if split(urlsplit(server.public_url).netloc)[0].endswith(f".{name}"):
            raise SettingsError("CODEHUB_PUBLIC_URL lies below CODEHUB_WORKSPACE_DOMAIN: give them different names")
        return Origins(name, server.public_url, scheme, port)
    public = urlsplit(server.public_url).hostname if server.public_url else None
    local = is_loopback(server.host) and (public is None or is_loopback(public))
    name = f"[{server.host}]" if ":" in server.host else server.host
    return Origins(LOCALHOST if local else None, server.public_url, scheme, platform=name)
