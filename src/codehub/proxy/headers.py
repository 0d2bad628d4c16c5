"""Which headers pass, in both directions, and what is added: parsed heads in, the bytes of a new head out. Pure.

`downstream` writes requests with it, `upstream` answers. Framing headers are never copied, always made.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address

from codehub.proxy import admission, cookies
from codehub.proxy.framing import HOST
from codehub.proxy.model import CHUNKED, Block, Field, Forward, Hygiene, RequestHead, ResponseHead
from codehub.settings import Network

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te"}
    | {b"transfer-encoding", b"content-length", b"upgrade", b"http2-settings", b"proxy-authentication-info"}
)
MADE_FOR_REQUESTS = frozenset({b"host", b"expect"})
# What only a proxy in front of us may say.
FROM_PROXIES = frozenset(
    {b"forwarded", b"x-forwarded", b"x-forwarded-port", b"x-forwarded-server", b"x-forwarded-prefix", b"x-real-ip"}
    | {b"x-forwarded-scheme", b"x-forwarded-ssl", b"x-scheme", b"x-client-ip", b"x-original-url", b"x-rewrite-url"}
)
MADE_FOR_FORWARDING = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"})
ANCESTORS = re.compile(rb"(?:^|;|(?<=,))\s*frame-ancestors(?:\s[^;,]*)?(?=[;,]|$)", re.IGNORECASE)
SCHEME = re.compile(rb"https?|wss?", re.IGNORECASE)
API = Hygiene()


def upstream_hygiene(cookie_names: frozenset[bytes], cookie_prefix: bytes, ours: Collection[bytes] = ()) -> Hygiene:
    """For upstreams that run a user's programs: they see none of the platform's secrets and set none of its state.

    `ours`: request headers that only the platform adds.
    """
    return Hygiene(
        request=frozenset({b"authorization", *ours}),
        response=frozenset(
            {b"service-worker-allowed", b"clear-site-data", b"strict-transport-security", b"alt-svc"}
            | {b"public-key-pins", b"public-key-pins-report-only"}
        ),
        cookies=cookie_names,
        cookie_prefix=cookie_prefix,
        cookie_domains=False,
    )


def in_frame_of(hygiene: Hygiene, origin: str) -> Hygiene:
    """The same for answers that a page of this origin shows in a frame; no other may, whatever the upstream says."""
    return replace(
        hygiene,
        response=hygiene.response | {b"x-frame-options"},
        grants=(*hygiene.grants, f"Content-Security-Policy: frame-ancestors 'self' {origin}".encode()),
        framed=True,
    )


class Source:
    """Who is at the other end of a connection, and what we tell upstreams about them. Made once per connection."""

    __slots__ = ("_lines", "_scheme", "address", "holder", "trusted")

    def __init__(self, address: str, trusted: tuple[Network, ...], scheme: bytes) -> None:
        self.address = address
        self.trusted = _is_one_of(address, trusted)
        # A proxy in front of us has many people's connections: its address is no single person's.
        self.holder = f"={address}" if self.trusted else admission.holder(address)
        self._scheme = scheme
        told = [b"X-Forwarded-For: " + address.encode()] if address else []
        self._lines = b"\r\n".join([*told, b"X-Forwarded-Proto: " + scheme, b"X-Forwarded-Host: "])

    def asker(self, head: RequestHead) -> str:
        """Who counts for a stranger's request."""
        if not self.trusted:
            return self.holder
        told = head.get(b"x-forwarded-for").rpartition(b",")[2].strip().decode("latin-1")
        try:
            return admission.holder(str(ip_address(told.partition("%")[0])))
        except ValueError:
            return admission.holder(self.address)

    def lines(self, head: RequestHead) -> bytes:
        if not self.trusted:
            return self._lines + head.block.host
        told, host = head.get(b"x-forwarded-proto"), head.get(b"x-forwarded-host")
        chain = b", ".join(filter(None, [head.get(b"x-forwarded-for"), self.address.encode()]))
        proto = told.lower() if SCHEME.fullmatch(told) else self._scheme
        host = host if HOST.fullmatch(host) else head.host
        return b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Host: %b" % (chain, proto, host)


def _is_one_of(address: str, networks: tuple[Network, ...]) -> bool:
    if not address or not networks:
        return False
    parsed = ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None) or parsed
    return any(mapped in network for network in networks)


def _passed(block: Block, forward: Forward, trusted: bool) -> bytes:
    """The client's own headers, as far as they pass, and what is always added, each with the line end before it."""
    drop = HOP_BY_HOP | MADE_FOR_REQUESTS | MADE_FOR_FORWARDING | forward.hygiene.request | forward.drop | block.named
    if not trusted:
        drop |= FROM_PROXIES
    fields = block.fields
    if forward.hygiene.cookies and b"cookie" in block.index:
        fields = _with_cookies(fields, b"cookie", forward.hygiene)
    lines = [line for _, _, guard, line in fields if guard not in drop]
    lines.append(b"Via: 1.%d codehub" % block.minor)
    lines += [name + b": " + value for name, value in forward.add]
    return b"".join([b"\r\n" + line for line in lines])


_passed_again = lru_cache(maxsize=512)(_passed)


def request(head: RequestHead, forward: Forward, source: Source, told: bool = False) -> bytes:
    """The whole head of the request for the upstream, with its empty line.

    `told`: the client that waited for 100 has got it from us.
    """
    block = head.block
    path = target(head.target, forward.strip_prefix) if forward.strip_prefix else head.target
    passed = (_passed_again if block.small else _passed)(block, forward, source.trusted)
    parts = (head.method, path, block.host, passed, source.lines(head))
    return b"%b %b HTTP/1.1\r\nHost: %b%b\r\n%b\r\n" % parts + _request_framing(head, told)


def _with_cookies(fields: list[Field], key: bytes, hygiene: Hygiene) -> list[Field]:
    """The same with what may pass of the cookies."""
    clean = cookies.for_upstream if key == b"cookie" else cookies.for_browser
    kept = []
    for field in fields:
        if field.key != key:
            kept.append(field)
        elif value := clean(field.value, hygiene):
            kept.append(Field(key, value, field.guard, field.pair[0] + b": " + value))
    return kept


def _without_ancestors(fields: list[Field]) -> list[Field]:
    """Several policies hold together: what the upstream says of frames would come on top of what we say."""
    kept = []
    for field in fields:
        if field.key == b"content-security-policy":
            value = ANCESTORS.sub(b"", field.value).strip(b"; ")
            if value:
                kept.append(Field(field.key, value, field.guard, field.pair[0] + b": " + value))
        else:
            kept.append(field)
    return kept


def _request_framing(head: RequestHead, told: bool) -> bytes:
    if head.upgrade:
        return b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    if head.length == 0 and b"content-length" not in head.block.index:
        return b"\r\n"
    body = b"Transfer-Encoding: chunked\r\n" if head.length == CHUNKED else b"Content-Length: %d\r\n" % head.length
    return body + (b"Expect: 100-continue\r\n\r\n" if head.block.expects and not told else b"\r\n")


def target(whole: bytes, prefix: bytes) -> bytes:
    rest = whole.removeprefix(prefix)
    return rest if rest[:1] == b"/" else b"/" + rest


def response_framing(head: ResponseHead, asked: RequestHead, *, keep: bool) -> tuple[bytes, bool]:
    """(the lines that say where the answer ends and whether the connection goes on, the body is sent in chunks)"""
    length, chunks, lines = head.length, False, b""
    if length > 0 or (length == 0 and head.status != 204):
        announced = head.index.get(b"content-length")
        lines = b"Content-Length: %d\r\n" % int(announced) if announced is not None else b""
    elif length < 0 and asked.minor:
        chunks, lines = True, b"Transfer-Encoding: chunked\r\n"
    if not keep:
        return lines + b"Connection: close\r\n\r\n", chunks
    return lines + (b"\r\n" if asked.minor else b"Connection: keep-alive\r\n\r\n"), chunks


@lru_cache(maxsize=64)
def _kept_inside(hygiene: frozenset[bytes]) -> frozenset[bytes]:
    return HOP_BY_HOP | hygiene


def response(head: ResponseHead, hygiene: Hygiene, framing: bytes) -> bytes:
    """The whole head of the answer for the browser; `framing` are the lines that say where it ends."""
    drop = _kept_inside(hygiene.response)
    if head.named:
        drop |= head.named
    fields = head.fields
    if hygiene.cookies and b"set-cookie" in head.index:
        fields = _with_cookies(fields, b"set-cookie", hygiene)
    if hygiene.framed and b"content-security-policy" in head.index:
        fields = _without_ancestors(fields)
    parts = [head.line]
    parts += [line for key, _, _, line in fields if key not in drop]
    parts += hygiene.grants
    parts.append(framing)
    return b"\r\n".join(parts)
