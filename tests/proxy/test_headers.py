"""Which headers pass: a workspace sees nothing of the platform's, and sets nothing of its state."""

from ipaddress import ip_network

import pytest

from codehub.proxy.headers import in_frame_of, upstream_hygiene
from codehub.proxy.model import Forward, Hygiene
from tests.proxy.harness import Proxy, Seen, ToOne, Upstream, exchange, one_answer, proxied

WORKSPACE = upstream_hygiene(frozenset({b"codehub", b"__host-codehub"}), b"codehub-w-")


def sent(*fields: bytes, target: bytes = b"/w/abc/x", **forward: object) -> Seen:
    """What the upstream of a workspace gets."""
    forward.setdefault("hygiene", WORKSPACE)
    with proxied(**forward) as (proxy, upstream):  # type: ignore[arg-type]
        lines = b"".join(field + b"\r\n" for field in fields)
        exchange(
            proxy, b"GET " + target + b" HTTP/1.1\r\nHost: lab.example:8000\r\nConnection: close\r\n" + lines + b"\r\n"
        )
    return upstream.seen[0]


def received(*fields: bytes, hygiene: Hygiene = WORKSPACE) -> list[tuple[bytes, bytes]]:
    """What the browser gets of a workspace's answer."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + b"".join(f + b"\r\n" for f in fields) + b"\r\n"
    with proxied(answer=answer, hygiene=hygiene) as (proxy, _):
        got = one_answer(exchange(proxy, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    return [(k, v) for k, v in got.headers if k not in {b"content-length", b"connection", b"date"}]


def test_upstreams_are_told_who_asked() -> None:
    seen = sent()
    assert seen.header(b"host") == b"lab.example:8000"
    assert seen.header(b"x-forwarded-for") == b"127.0.0.1"
    assert seen.header(b"x-forwarded-proto") == b"http"
    assert seen.header(b"x-forwarded-host") == b"lab.example:8000"


def test_what_a_stranger_says_about_who_asked_is_dropped() -> None:
    lies = (
        b"X-Forwarded-For: 1.2.3.4",
        b"X-Forwarded-Proto: https",
        b"X-Forwarded-Host: bank.example",
        b"Forwarded: for=x",
    )
    more = (
        b"X-Real-IP: 1.2.3.4",
        b"X_Forwarded_For: 1.2.3.4",
        b"x-forwarded-PORT: 1",
        b"X-Forwarded-Prefix: /",
        b"X-Scheme: x",
    )
    names = {key for key, _ in sent(*lies, *more).headers}
    assert names == {b"host", b"via", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"}
    assert sent(*lies, *more).header(b"x-forwarded-for") == b"127.0.0.1"


def test_a_trusted_proxy_is_believed() -> None:
    upstream = Upstream()
    proxy = Proxy(ToOne(Forward(upstream.address)), trusted=(ip_network("127.0.0.0/8"),))
    told = b"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: lab.example\r\n"
    odd = b"X-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a b\r\n"
    for lines in (told, odd):
        exchange(proxy, b"GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n" + lines + b"\r\n")
    first, second = upstream.seen
    assert first.header(b"x-forwarded-for") == b"192.0.2.7, 127.0.0.1"
    assert (first.header(b"x-forwarded-proto"), first.header(b"x-forwarded-host")) == (b"https", b"lab.example")
    assert (second.header(b"x-forwarded-proto"), second.header(b"x-forwarded-host")) == (b"http", b"inner")
    proxy.close()
    upstream.close()


@pytest.mark.parametrize(("cookies", "kept"), [
    (b"a=1; codehub=secret; b=2", b"a=1; b=2"),
    (b"codehub=secret", None),
    (b"__Host-codehub=secret; a=1", b"a=1"),
    (b"__HOST-CodeHub=secret;a=1", b"a=1"),
    (b"codehub-w-abc=secret; x=codehub=1", b"x=codehub=1"),
    (b"codehub", None),
    (b" codehub =secret;;  a=1 ;", b"a=1"),
    (b"mycodehub=1; codehubber=2", b"mycodehub=1; codehubber=2"),
    (b"a=1\r\nCookie: codehub=secret\r\nCookie: b=2", b"a=1, b=2"),
    (b'a="x; codehub=secret; y"', b'a="x; y"'),
])  # fmt: skip
def test_the_platforms_cookies_stay_outside(cookies: bytes, kept: bytes | None) -> None:
    assert sent(b"Cookie: " + cookies).header(b"cookie") == kept


def test_authorization_does_not_reach_a_workspace() -> None:
    seen = sent(b"Authorization: Bearer x", b"Proxy-Authorization: y", b"authorization_: z")
    assert {key for key, _ in seen.headers} & {b"authorization", b"proxy-authorization"} == set()


def test_what_connection_names_stays_on_its_hop_but_never_the_framing() -> None:
    seen = sent(b"Connection: x-a, host, content-length, keep-alive", b"X-A: 1", b"X-B: 2", b"Content-Length: 0")
    assert seen.header(b"x-a") is None
    assert (seen.header(b"x-b"), seen.header(b"host"), seen.header(b"content-length")) == (
        b"2",
        b"lab.example:8000",
        b"0",
    )


@pytest.mark.parametrize("name", [
    b"Transfer---Encoding", b"Transfer___Encoding", b"Transfer_Encoding", b"transfer-_-encoding", b"Transfer.Encoding",
    b"-Transfer-Encoding", b"Transfer-Encoding_", b"Content--Length", b"Content~Length", b"__Content_Length",
    b"X--Forwarded-For", b"X_Real__IP", b"Authorization_", b"Proxy__Authorization", b"Upgrade_",
])  # fmt: skip
def test_what_an_ide_could_take_for_a_header_of_ours_is_dropped(name: bytes) -> None:
    """CGI-like servers see no difference between some characters, and some see none at all."""
    seen = sent(name + b": 5", b"X-Kept: 1")
    assert {key for key, _ in seen.headers} == {
        b"host", b"via", b"x-kept", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host",
    }  # fmt: skip


def test_upstreams_are_told_that_a_gateway_is_between() -> None:
    assert sent().header(b"via") == b"1.1 codehub"
    assert sent(b"Via: 1.0 fred").header(b"via") == b"1.0 fred, 1.1 codehub"


def test_the_host_of_an_absolute_target_is_the_one_that_counts() -> None:
    seen = sent(target=b"http://other.example:81/w/abc/x?y")
    assert (seen.target, seen.header(b"host")) == (b"/w/abc/x?y", b"other.example:81")
    assert seen.header(b"x-forwarded-host") == b"other.example:81"
    assert sent().header(b"host") == b"lab.example:8000"  # and nobody else gets it


def test_a_route_may_drop_and_add_headers() -> None:
    seen = sent(
        b"X-Drop: 1", b"X_Drop: 2", b"X-User: eve", drop=frozenset({b"x-drop", b"x-user"}), add=((b"X-User", b"ada"),)
    )
    assert (seen.header(b"x-drop"), seen.header(b"x-user")) == (None, b"ada")


@pytest.mark.parametrize(("target", "arrives"), [
    (b"/w/abc/lab?x=1", b"/lab?x=1"), (b"/w/abc/", b"/"), (b"/w/abc", b"/"), (b"/w/abc?x", b"/?x"),
    (b"/w/abc//x", b"//x"),
])  # fmt: skip
def test_a_prefix_may_be_taken_away(target: bytes, arrives: bytes) -> None:
    assert sent(target=target, strip_prefix=b"/w/abc").target == arrives


def test_an_ide_cannot_change_the_origins_state() -> None:
    fields = (
        b"Service-Worker-Allowed: /",
        b'Clear-Site-Data: "*"',
        b"Strict-Transport-Security: max-age=1",
        b"Alt-Svc: h3",
    )
    assert received(*fields, b"X-Frame-Options: DENY") == [(b"x-frame-options", b"DENY")]


@pytest.mark.parametrize(("cookie", "arrives"), [
    (b"a=1; Path=/; HttpOnly", b"a=1; Path=/; HttpOnly"),
    (b"a=1; Domain=example; Path=/", b"a=1; Path=/"),
    (b"a=1;domain = .example;DOMAIN=b; Secure", b"a=1; Secure"),
    (b"codehub=evil; Path=/", None),
    (b" codehub =evil", None),
    (b"__Host-codehub=evil; Secure; Path=/", None),
    (b"__hOsT-codehub=evil; Secure; Path=/", None),
    (b"codehub-w-other=evil", None),
    (b"=codehub=evil", None),
    (b"codehub", None),
    (b"mycodehub=1", b"mycodehub=1"),
])  # fmt: skip
def test_an_ide_sets_only_cookies_of_its_own(cookie: bytes, arrives: bytes | None) -> None:
    assert received(b"Set-Cookie: " + cookie) == ([(b"set-cookie", arrives)] if arrives else [])


@pytest.mark.parametrize(("policy", "arrives"), [
    (b"default-src 'self'; frame-ancestors 'none'; img-src *", b"default-src 'self'; img-src *"),
    (b"frame-ancestors 'none'", None),
    (b" FRAME-Ancestors https://a https://b ;script-src 'self'", b"script-src 'self'"),
    (b"frame-ancestors;frame-ancestors 'self'", None),
    (b"default-src 'self', frame-ancestors 'none'; img-src *", b"default-src 'self',; img-src *"),
    (b"frame-src 'none'; x-frame-ancestors y", b"frame-src 'none'; x-frame-ancestors y"),
])  # fmt: skip
def test_in_a_frame_only_we_say_whose_page_it_is(policy: bytes, arrives: bytes | None) -> None:
    framed = in_frame_of(WORKSPACE, "https://lab.example")
    ours = (b"content-security-policy", b"frame-ancestors 'self' https://lab.example")
    got = received(b"Content-Security-Policy: " + policy, b"X-Frame-Options: DENY", hygiene=framed)
    assert got == [*([(b"content-security-policy", arrives)] if arrives else []), ours]


@pytest.mark.parametrize(("cookie", "arrives"), [
    (b"a=1; Path=/; HttpOnly", b"a=1; Path=/; HttpOnly; SameSite=None; Secure; Partitioned"),
    (b"a=1; samesite=strict; SECURE; Domain=x; partitioned", b"a=1; SameSite=None; Secure; Partitioned"),
    (b"codehub=evil", None),
])  # fmt: skip
def test_in_a_frame_cookies_are_kept_apart_for_the_page_around_it(cookie: bytes, arrives: bytes | None) -> None:
    got = received(b"Set-Cookie: " + cookie, hygiene=in_frame_of(WORKSPACE, "https://lab.example"))
    assert [value for key, value in got if key == b"set-cookie"] == ([arrives] if arrives else [])
