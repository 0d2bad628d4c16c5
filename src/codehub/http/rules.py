"""The rules about requests, asked by `middleware` and `pages`. Pure: headers in, an answer out."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from codehub.hostnames import is_loopback, split
from codehub.settings import Network

FORWARDED = "x-codehub-forwarded"  # set by our own front door for requests that a proxy sent
PROXIES_SAY = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
SAFE_METHODS = {"GET", "HEAD", "OPTIONS", "TRACE"}
DEFAULT_PORTS = {"http": 80, "https": 443}
# Programs that open every link in a message to show a preview of it, or to scan it. (Cubot makes telephones.)
PREVIEWERS = re.compile(
    r"(?<!cu)bot\b|crawl|spider|scrap|preview|facebookexternalhit|whatsapp|vkshare|safelinks|linkexpanding",
    re.IGNORECASE,
)


def client_address(peer: str | None, forwarded_for: Iterable[str], trusted: Sequence[Network]) -> str | None:
    """The nearest address that is not one of our own proxies. X-Forwarded-For counts only when one of those sent it."""
    hops = [hop.strip() for header in forwarded_for for hop in header.split(",")]
    if peer is None and hops:  # by a Unix socket, which only our own front door can reach
        peer = hops.pop()
    address = _parse_address(peer or "")
    while address and hops and any(address in network for network in trusted):
        before = _parse_address(hops.pop())
        if before is None:
            break  # not an address: the proxy it came through is the last thing we know
        address = before
    return str(address) if address else peer


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Some proxies add the port: `192.0.2.1:5000`, `[2001:db8::1]:5000`."""
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    # An IPv4 client on a socket that speaks both comes as ::ffff:192.0.2.1.
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def is_direct_and_local(headers: Headers, address: str | None, *, by_front_door: bool) -> bool:
    """Does a program on this machine ask us, and no proxy for another client?

    Proxies say so, or ask for us by the name that people use. Our own front door says what it was told.
    """
    told = (FORWARDED,) if by_front_door else (FORWARDED, *PROXIES_SAY)
    if any(name in headers for name in told):
        return False
    return is_loopback(address or "") and is_loopback(split(headers.get("host", ""))[0])


def is_within(address: str | None, networks: Sequence[Network]) -> bool:
    parsed = _parse_address(address or "")
    return parsed is not None and any(parsed in network for network in networks)


def origin_of_url(url: str) -> tuple[str, str, int | None] | None:
    """(scheme, host, port), as browsers compare them; None for what has none, such as `null`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or DEFAULT_PORTS.get(parts.scheme)


def logs_in_by_token(path: str, headers: Headers) -> bool:
    """Is a token what this request's login is? In the API a bearer token goes before a cookie, a bad one is refused.

    Pages are not so strict: to them a bad token is no login, and a cookie or the link itself may still do something.
    """
    return path.startswith("/api/") and headers.get("authorization", "").partition(" ")[0].lower() == "bearer"


def may_write(headers: Headers, public_url: str | None) -> bool:
    """CSRF: may a request with these headers change something, as far as where it comes from is concerned?

    Browsers say where a request comes from. Workspaces' pages are of the same *site* as ours, so `SameSite` cookies do
    not keep them out; `Sec-Fetch-Site` and `Origin` do, and each that is there has to be ours. Old browsers send a form
    with neither, but with the page that it is on (`Referer`). Programs send none of them, and carry no other user's
    cookie.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    if origin is None and site is None:
        origin = headers.get("referer")
    if origin is None:
        return True
    source = origin_of_url(origin)
    if source is None:
        return False
    # Behind a TLS proxy we do not know our own scheme; the server of pages on our host and port is us.
    here = origin_of_url(f"{source[0]}://{headers.get('host', '')}")
    return source == here or (public_url is not None and source == origin_of_url(public_url))


def looks_ahead(headers: Headers) -> bool:
    """Is this a preview, a prefetch or a page's picture, rather than a person following a link?"""
    purpose = " ".join(headers.get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz"))
    if "prefetch" in purpose or "preview" in purpose:
        return True
    as_browsers_say = (headers.get("sec-fetch-mode", "navigate"), headers.get("sec-fetch-dest", "document"))
    if as_browsers_say != ("navigate", "document"):
        return True
    return PREVIEWERS.search(headers.get("user-agent", "")) is not None
