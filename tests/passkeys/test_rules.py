"""Where passkeys work, what a counter says, and what a passkey is called: as tables."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from codehub.passkeys import rules
from codehub.passkeys.errors import PasskeyLimitError, PasskeysUnavailableError
from codehub.passkeys.model import Obstacle, Passkey, Place
from codehub.settings import ServerConfig

HERE = Place("localhost", "http://localhost:8000")
PASSKEY = Passkey("p1", "u1", b"c", b"k", 0, "Phone", [], "localhost", datetime(2026, 3, 2, tzinfo=UTC), None, None)


@pytest.mark.parametrize(
    ("public_url", "host", "expected"),
    [
        (None, "localhost:8000", HERE),
        (None, "127.0.0.1:8000", HERE),
        (None, "[::1]:8000", HERE),
        # Another port is another program's page: what it was signed for is not what we expect.
        (None, "localhost:3000", HERE),
        (None, "192.168.0.5:8000", Obstacle.INSECURE),
        (None, "lab.local:8000", Obstacle.INSECURE),
        (None, "ws1.localhost:8000", Obstacle.INSECURE),
        (None, "", Obstacle.INSECURE),
        ("https://lab.example.org", "lab.example.org", Place("lab.example.org", "https://lab.example.org")),
        ("https://Lab.Example.org:443/", "10.0.0.1:8000", Place("lab.example.org", "https://lab.example.org")),
        ("https://lab.example.org:8443", "x", Place("lab.example.org", "https://lab.example.org:8443")),
        ("https://교실.example.org", "x", Place("xn--9d0b622b.example.org", "https://xn--9d0b622b.example.org")),
        ("http://localhost:9000", "localhost:9000", Place("localhost", "http://localhost:9000")),
        ("http://localhost:80", "localhost", Place("localhost", "http://localhost")),
        ("http://lab.example.org", "lab.example.org", Obstacle.INSECURE),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", Obstacle.ADDRESS),
        ("https://192.168.0.5", "192.168.0.5", Obstacle.ADDRESS),
        ("https://[2001:db8::1]", "x", Obstacle.ADDRESS),
    ],
)
def test_passkeys_work_at_one_origin(public_url: str | None, host: str, expected: Place | Obstacle) -> None:
    assert rules.place_of(ServerConfig(public_url=public_url), host) == expected


def test_the_port_is_the_one_we_listen_on() -> None:
    assert rules.place_of(ServerConfig(port=9000), "localhost:1") == Place("localhost", "http://localhost:9000")


@pytest.mark.parametrize("obstacle", Obstacle)
def test_every_obstacle_is_explained(obstacle: Obstacle) -> None:
    with pytest.raises(PasskeysUnavailableError, match="CODEHUB_PUBLIC_URL"):
        rules.require_place(obstacle)


@pytest.mark.parametrize(
    ("known", "now", "copied"),
    [(0, 0, False), (0, 1, False), (5, 6, False), (5, 900, False), (5, 5, True), (5, 4, True), (5, 0, True)],
)
def test_a_counter_that_does_not_grow_says_that_there_is_a_copy(known: int, now: int, copied: bool) -> None:
    assert rules.went_back(known, now) is copied


def test_the_number_of_passkeys_is_bounded_unless_it_is_not() -> None:
    two = [PASSKEY, replace(PASSKEY, id="p2")]
    rules.check_count(two, 3)
    rules.check_count(two, 0)
    with pytest.raises(PasskeyLimitError):
        rules.check_count(two, 2)


@pytest.mark.parametrize(
    ("agent", "label"),
    [("Mozilla/5.0 (Windows NT 10.0) Chrome/156.0 Safari/537.36", "Chrome, Windows"), ("curl/8", "Passkey")],
)
def test_a_passkey_is_called_by_what_the_browser_says_it_is(agent: str, label: str) -> None:
    assert rules.default_label(agent, []) == label


def test_a_second_one_of_the_same_browser_is_numbered() -> None:
    assert rules.default_label("Firefox/140 Linux", ["Firefox, Linux"]) == "Firefox, Linux 2"
    assert (
        rules.default_label("Firefox/140 Linux", ["Firefox, Linux", "Phone", "Firefox, Linux 2"]) == "Firefox, Linux 3"
    )
