"""The rules about passkeys. Pure: no I/O."""

import hashlib
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from codehub import user_agents
from codehub.hostnames import LOCALHOST, is_loopback, split
from codehub.passkeys.errors import PasskeyLimitError, PasskeysUnavailableError
from codehub.passkeys.model import Obstacle, Passkey, Place
from codehub.settings import ServerConfig

DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST_LABEL = 100  # characters
EXPLANATIONS = {
    Obstacle.ADDRESS: "passkeys belong to a name, and CODEHUB_PUBLIC_URL is a bare address: set it to a name",
    Obstacle.INSECURE: "passkeys need https and a name: set CODEHUB_PUBLIC_URL to such an address, and open that one",
}


def place_of(server: ServerConfig, host: str) -> Place | Obstacle:
    """Where the client that reached us by this `Host` can use passkeys.

    What `Host` says is believed in one thing alone, whether the client is on this machine: a page of another port or
    name, which could have any answer signed for its own origin, must not choose the origin that we expect.
    """
    if server.public_url:
        return _public_place(server.public_url)
    if not is_loopback(split(host)[0]):
        return Obstacle.INSECURE
    return Place(LOCALHOST, _origin("http", LOCALHOST, server.port))


def name_of(server: ServerConfig) -> str | None:
    """What a passkey belongs to that works here now; None: none does."""
    place = place_of(server, LOCALHOST)
    return place.name if isinstance(place, Place) else None


def _public_place(url: str) -> Place | Obstacle:
    parts = urlsplit(url)
    name = (parts.hostname or "").rstrip(".")
    if _is_address(name):
        return Obstacle.ADDRESS
    name = name.encode("idna").decode()  # as browsers write it
    if parts.scheme != "https" and name != LOCALHOST:
        return Obstacle.INSECURE
    return Place(name, _origin(parts.scheme, name, parts.port))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _origin(scheme: str, name: str, port: int | None) -> str:
    """As browsers write it: without the usual port."""
    return f"{scheme}://{name}" if port in {None, DEFAULT_PORTS[scheme]} else f"{scheme}://{name}:{port}"


def require_place(found: Place | Obstacle) -> Place:
    if isinstance(found, Obstacle):
        raise PasskeysUnavailableError(EXPLANATIONS[found])
    return found


def went_back(known: int, now: int) -> bool:
    """Was a copy of this passkey used meanwhile? Those that do not count, as most that are synchronised, say 0."""
    return (known > 0 or now > 0) and now <= known


def account_id(challenge: bytes) -> str:
    """Of the account that an answer to this question makes: the question cannot be guessed, and is asked once."""
    return f"u{hashlib.sha256(challenge).hexdigest()[:15]}"


def check_count(known: Collection[Passkey], most: int) -> None:
    if most and len(known) >= most:
        raise PasskeyLimitError(f"you have {most} passkeys: remove one first")


def default_label(agent: str, taken: Collection[str]) -> str:
    """From what the browser says it is, such as `Chrome, Windows`: the same in every language."""
    label = ", ".join(filter(None, (user_agents.browser(agent), user_agents.system(agent)))) or "Passkey"
    numbered = (f"{label} {n}" if n > 1 else label for n in range(1, len(taken) + 2))
    return next(candidate for candidate in numbered if candidate not in taken)
