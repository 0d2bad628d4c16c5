"""Cookies between browsers and upstreams that are not trusted: ours stay outside, both ways. Pure; for `headers`."""

from codehub.proxy.model import Hygiene

# In a frame on another site's page a browser keeps only cookies that say so, apart for each site around it.
FRAMED = b"; SameSite=None; Secure; Partitioned"
FRAMED_NAMES = {b"samesite", b"secure", b"partitioned"}


def _is_ours(name: bytes, hygiene: Hygiene) -> bool:
    # Browsers compare the `__Host-` prefix without regard to case, so nothing that only differs in case gets by.
    bare = name.strip().lower()
    return bare in hygiene.cookies or (bool(hygiene.cookie_prefix) and bare.startswith(hygiene.cookie_prefix))


def for_upstream(value: bytes, hygiene: Hygiene) -> bytes:
    """The `Cookie` header without the platform's; empty when nothing is left."""
    pairs = value.split(b";")
    kept = [pair.strip() for pair in pairs if not _is_ours(pair.partition(b"=")[0], hygiene)]
    return b"; ".join(filter(None, kept))


def for_browser(value: bytes, hygiene: Hygiene) -> bytes:
    """One `Set-Cookie` header as such an upstream may send it; empty when it may not."""
    pair, *attributes = value.split(b";")
    name, equals, _ = pair.partition(b"=")
    # A cookie without a name is sent back as its bare value, which may look like any other cookie.
    if not equals or not name.strip() or _is_ours(name, hygiene):
        return b""
    left_out = set() if hygiene.cookie_domains else {b"domain"}
    if hygiene.framed:
        left_out |= FRAMED_NAMES
    if not left_out:
        return value
    kept = [part for part in attributes if part.partition(b"=")[0].strip().lower() not in left_out]
    return b";".join([pair, *kept]) + (FRAMED if hygiene.framed else b"")
