"""The rules about requests: whose address counts, which writes are a forgery, what merely looks ahead."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from codehub.http import rules

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        pytest.param("192.0.2.1", [], "192.0.2.1", id="directly"),
        pytest.param("192.0.2.1", ["198.51.100.9"], "192.0.2.1", id="a stranger's word does not count"),
        pytest.param("10.0.0.1", [], "10.0.0.1", id="our proxy itself"),
        pytest.param("10.0.0.1", ["198.51.100.9"], "198.51.100.9", id="through our proxy"),
        pytest.param(
            "10.0.0.1", ["1.1.1.1, 198.51.100.9"], "198.51.100.9", id="what the client claimed is not believed"
        ),
        pytest.param("10.0.0.1", ["198.51.100.9, 10.0.0.2"], "198.51.100.9", id="through two of ours"),
        pytest.param("10.0.0.1", ["1.1.1.1", "198.51.100.9"], "198.51.100.9", id="two headers: the nearest counts"),
        pytest.param("10.0.0.1", ["10.0.0.9, 198.51.100.9"], "198.51.100.9", id="pretending to be behind ours"),
        pytest.param("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3", id="all of them ours"),
        pytest.param("10.0.0.1", ["198.51.100.9:4711"], "198.51.100.9", id="with a port"),
        pytest.param("10.0.0.1", ["[2001:db9::1]:4711"], "2001:db9::1", id="IPv6 with a port"),
        pytest.param("::ffff:10.0.0.1", ["198.51.100.9"], "198.51.100.9", id="our proxy on a socket for both"),
        pytest.param("::ffff:192.0.2.1", [], "192.0.2.1", id="IPv4 on a socket for both"),
        pytest.param("2001:db8::1", ["2001:db9::2"], "2001:db9::2", id="IPv6"),
        pytest.param("10.0.0.1", ["unknown"], "10.0.0.1", id="no address"),
        pytest.param("10.0.0.1", ["198.51.100.9, <script>"], "10.0.0.1", id="garbage nearest to us"),
        pytest.param("10.0.0.1", [" , ,"], "10.0.0.1", id="nothing in it"),
        pytest.param(None, ["198.51.100.9"], "198.51.100.9", id="from the front door, by its Unix socket"),
        pytest.param(None, [], None, id="a Unix socket without a word"),
    ],
)
def test_whose_address_counts(peer: str | None, forwarded: list[str], address: str | None) -> None:
    assert rules.client_address(peer, forwarded, TRUSTED) == address


@given(st.lists(st.text(max_size=40), max_size=4))
def test_nobody_outside_can_claim_an_address(headers: list[str]) -> None:
    assert rules.client_address("192.0.2.1", headers, TRUSTED) == "192.0.2.1"
    assert rules.client_address("10.0.0.1", [*headers, "198.51.100.9"], TRUSTED) == "198.51.100.9"


@pytest.mark.parametrize(
    ("headers", "public_url", "allowed"),
    [
        ({}, None, True),
        ({"sec-fetch-site": "same-origin"}, None, True),
        ({"sec-fetch-site": "none"}, None, True),
        ({"sec-fetch-site": "same-site"}, None, False),
        ({"sec-fetch-site": "cross-site"}, None, False),
        ({"sec-fetch-site": "cross-site", "origin": "http://lab.org"}, None, False),
        ({"sec-fetch-site": "cross-site", "authorization": "Bearer x"}, None, False),
        ({"sec-fetch-site": "same-origin", "origin": "http://lab.org"}, None, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.org"}, None, False),
        ({"sec-fetch-site": "none", "origin": "null"}, None, False),
        ({"sec-fetch-site": "same-origin", "origin": "https://public.org"}, "https://public.org", True),
        ({"referer": "http://lab.org/people?q=1"}, None, True),
        ({"referer": "http://evil.org/http://lab.org"}, None, False),
        ({"referer": "about:blank"}, None, False),
        ({"referer": "http://evil.org/", "origin": "http://lab.org"}, None, True),
        ({"referer": "http://evil.org/", "sec-fetch-site": "same-origin"}, None, True),
        ({"origin": "http://lab.org"}, None, True),
        ({"origin": "http://LAB.org:80"}, None, True),
        ({"origin": "https://lab.org"}, None, True),
        ({"origin": "http://lab.org:8080"}, None, False),
        ({"origin": "http://evil.org"}, None, False),
        ({"origin": "http://ws.lab.org"}, None, False),
        ({"origin": "http://lab.org.evil.org"}, None, False),
        ({"origin": "http://lab.org@evil.org"}, None, False),
        ({"origin": "null"}, None, False),
        ({"origin": "null", "host": ""}, None, False),
        ({"origin": "http://[", "host": "["}, None, False),
        ({"origin": ""}, None, False),
        ({"origin": "https://public.org", "host": "10.0.0.5:8000"}, "https://public.org/", True),
        ({"origin": "https://public.org", "host": "10.0.0.5:8000"}, "https://public.org:443/codehub", True),
        ({"origin": "http://public.org", "host": "10.0.0.5:8000"}, "https://public.org", False),
        ({"origin": "https://public.org.evil.org", "host": "10.0.0.5:8000"}, "https://public.org", False),
    ],
)
def test_which_writes_may_come_from_where(headers: dict[str, str], public_url: str | None, allowed: bool) -> None:
    assert rules.may_write(Headers({"host": "lab.org", **headers}), public_url) is allowed


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-purpose": "prefetch"},
        {"sec-purpose": "prefetch;prerender"},
        {"purpose": "prefetch"},
        {"x-purpose": "preview"},
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
        {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        {"user-agent": "facebookexternalhit/1.1; kakaotalk-scrap/1.0; +https://devtalk.kakao.com/"},
        {"user-agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"},
        {"user-agent": "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)"},
        {"user-agent": "WhatsApp/2.23.20.0"},
        {"user-agent": "TelegramBot (like TwitterBot)"},
        {"user-agent": "Mozilla/5.0 SkypeUriPreview Preview/0.5"},
    ],
)
def test_previews_and_prefetches_look_ahead(headers: dict[str, str]) -> None:
    assert rules.looks_ahead(Headers(headers))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"user-agent": "curl/8.5.0"},
        {"user-agent": "Python/3.11 aiohttp/3.11"},
        {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "cross-site"},
        {"user-agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0.0.0 Safari/537.36"},
        {"user-agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Mobile/15E148 KAKAOTALK 10.8.5"},
        {"user-agent": "Mozilla/5.0 (Linux; Android 14; CUBOT NOTE 50) AppleWebKit/537.36 Mobile Safari/537.36"},
    ],
)
def test_people_and_their_scripts_do_not(headers: dict[str, str]) -> None:
    assert not rules.looks_ahead(Headers(headers))
