"""URLs of servers that may be several: Redis alone, watched by Sentinels or as a Cluster; PostgreSQL by several hosts.

Pure. `groups` checks settings with it; `db.redis` and `db.connecting` open what it has read. What it says of a wrong
URL repeats no part of it that could be a password.
"""

import enum
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, unquote, urlencode, urlsplit

PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/]+)(?::(\d{1,5}))?")
REDIS_FORMS = (
    "redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://"
)
TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname", "ssl_cert_reqs")
OPTIONS = {"socket_timeout", "socket_connect_timeout", "max_connections", "health_check_interval", "protocol", *TLS}
OF_ONE = {"db", "username", "password", "client_name", "socket_keepalive"}
SENTINEL_LOGIN = ("sentinel_username", "sentinel_password")
WRITABLE = ("read-write", "primary")
MISQUOTED = "is not a valid URL; write / @ : # ? in a password as %2F %40 %3A %23 %3F"


def split(url: str) -> SplitResult:
    """As `urlsplit`, which refuses several hosts when one is an IPv6 address."""
    match = PARTS.fullmatch(url)
    return SplitResult(*(part or "" for part in match.groups())) if match else SplitResult("", "", "", "", "")


def _require_valid(url: str) -> None:
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError(MISQUOTED) from None


class Kind(enum.StrEnum):
    SERVER = "server"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class RedisUrl:
    kind: Kind
    url: str = field(repr=False)  # as of one server; of several, the first
    hosts: tuple[tuple[str, int], ...] = ()  # of Sentinels, or of some of a cluster's nodes
    primary: str = ""  # the name by which Sentinels know it
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)


def redis(url: str) -> RedisUrl:
    """Raises `ValueError` with what is wrong."""
    parts = split(url)
    scheme, _, kind = parts.scheme.partition("+")
    if parts.scheme in {"redis", "rediss", "unix"}:
        if "," in parts.netloc.rpartition("@")[2]:
            raise ValueError("names several servers: begin it with redis+cluster:// or redis+sentinel://")
        if "@" in parts.fragment:
            raise ValueError(MISQUOTED)
        _require_valid(url)
        _options(parts, OPTIONS | OF_ONE)
        return RedisUrl(Kind.SERVER, url)
    if scheme not in {"redis", "rediss"} or kind not in {Kind.SENTINEL, Kind.CLUSTER}:
        raise ValueError(f"must be a URL beginning with {REDIS_FORMS}")
    login, at, names = parts.netloc.rpartition("@")
    if parts.fragment or ("@" in parts.path and not at):
        raise ValueError(MISQUOTED)
    hosts = _hosts(names, 26379 if kind == Kind.SENTINEL else 6379)
    given = _options(parts, OPTIONS | (set(SENTINEL_LOGIN) if kind == Kind.SENTINEL else set()))
    path = [unquote(part) for part in parts.path.split("/") if part]
    primary, number = _path(Kind(kind), path)
    query = urlencode({name: value for name, value in given.items() if name in OPTIONS})
    host, port = hosts[0]
    shown = f"[{host}]" if ":" in host else host
    one = SplitResult(scheme, f"{login}{at}{shown}:{port}", f"/{number}", query, "").geturl()
    return RedisUrl(Kind(kind), one, hosts, primary, *(given.get(name) for name in SENTINEL_LOGIN))


def _options(parts: SplitResult, known: set[str]) -> dict[str, str]:
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if unknown := sorted(set(given) - known):
        if "@" in parts.query:  # what stands before it is no option, but the end of a password
            raise ValueError(MISQUOTED)
        raise ValueError(f"has an option that is not known: {unknown[0][:30]}")
    if not parts.scheme.startswith("rediss") and (only := sorted(set(given) & set(TLS))):
        raise ValueError(f"has {only[0]}, which is for TLS: begin it with {parts.scheme.replace('redis', 'rediss')}://")
    return given


def _path(kind: Kind, path: list[str]) -> tuple[str, int]:
    """The primary's name, and the number of the database."""
    if kind is Kind.CLUSTER:
        if path not in ([], ["0"]):
            raise ValueError("names a database: a cluster has only number 0")
        return "", 0
    if not path:
        raise ValueError("lacks the primary's name, as in redis+sentinel://h1,h2,h3/mymaster")
    if len(path) > 2 or (path[1:] and not path[1].isdecimal()):
        raise ValueError("must end with the primary's name, or that and the number of a database: /mymaster/0")
    return path[0], int(path[1]) if path[1:] else 0


def _hosts(names: str, port: int) -> tuple[tuple[str, int], ...]:
    found = [HOST.fullmatch(name) for name in names.split(",")]
    if not all(found):
        raise ValueError("must name its hosts as h1:6379,h2:6379, separated by commas")
    hosts = [(match[1].strip("[]"), int(match[2] or port)) for match in found if match]
    if any(not 0 < number < 65536 for _, number in hosts):
        raise ValueError("has a port that there cannot be")
    return tuple(hosts)


def redis_problem(url: str | None) -> str | None:
    """For a setting."""
    try:
        _ = url and redis(url)
    except ValueError as e:
        return str(e)
    return None


def postgres(url: str) -> tuple[str, ...]:
    """One URL for each of its hosts, in their order. Raises `ValueError` with what is wrong."""
    parts = split(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError("must be a URL beginning with postgresql:// or postgres://")
    wanted = parse_qs(parts.query).get("target_session_attrs", [WRITABLE[0]])[0]
    if wanted not in WRITABLE:
        raise ValueError(f"asks for other target_session_attrs than {' or '.join(WRITABLE)}: CodeHub writes")
    login, at, names = parts.netloc.rpartition("@")
    if "," not in names:
        _require_valid(url)
        return (url,)
    if not all(HOST.fullmatch(name) for name in names.split(",")):
        raise ValueError("must name its hosts as h1:5432,h2:5432, separated by commas")
    return tuple(parts._replace(netloc=f"{login}{at}{name}").geturl() for name in names.split(","))


def postgres_problem(url: str | None) -> str | None:
    """For a setting."""
    try:
        _ = url and postgres(url)
    except ValueError as e:
        return str(e)
    return None
