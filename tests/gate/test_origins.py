"""Which origin belongs to whom."""

import pytest

from codehub import settings as config
from codehub.errors import SettingsError
from codehub.gate import origins
from codehub.gate.origins import Origins


def of(**env: str) -> Origins:
    return origins.of(config.load({"CODEHUB_DATA_DIR": "/nowhere", **env}))


def test_on_loopback_every_workspace_is_below_localhost() -> None:
    local = of()
    assert local.isolated
    assert local.of_workspace("abc", "127.0.0.1:8000") == "http://abc.localhost:8000"
    assert local.workspace_of("abc.localhost:8000") == "abc"
    assert local.workspace_of("ABC.localhost.:8000") == "abc"
    assert [local.workspace_of(h) for h in ("localhost:8000", "127.0.0.1", "[::1]:8000", "abc.example.org")] == [
        None
    ] * 4


def test_the_way_back_leads_only_to_this_machine() -> None:
    local, host = of(), "abc.localhost:8000"
    assert local.of_platform(host, "127.0.0.1:8000") == "http://127.0.0.1:8000"
    assert local.of_platform(host, "[::1]:8000") == "http://[::1]:8000"
    assert local.of_platform(host, "localhost:8000") == "http://localhost:8000"
    assert local.of_platform(host) == "http://127.0.0.1:8000"
    for elsewhere in ("evil.example:8000", "127.0.0.1:9000", "abc.localhost:8000", "user@evil.example:8000"):
        assert local.of_platform(host, elsewhere) == "http://127.0.0.1:8000"


def test_a_domain_of_the_operators_is_used_with_the_public_url() -> None:
    ours = of(
        CODEHUB_HOST="0.0.0.0",
        CODEHUB_PUBLIC_URL="https://codehub.example.org/",
        CODEHUB_WORKSPACE_DOMAIN="labs.example.net",
    )
    assert ours.of_workspace("abc", "codehub.example.org") == "https://abc.labs.example.net"
    assert ours.workspace_of("abc.labs.example.net") == "abc"
    assert ours.workspace_of("codehub.example.org") is None
    assert ours.of_platform("abc.labs.example.net", "evil.example") == "https://codehub.example.org"
    assert ours.sources == "https://*.labs.example.net"


def test_without_either_nothing_is_isolated() -> None:
    for env in ({"CODEHUB_HOST": "0.0.0.0"}, {"CODEHUB_PUBLIC_URL": "https://codehub.example.org"}):
        shared = of(**env)
        assert not shared.isolated
        assert shared.of_workspace("abc", "codehub.example.org") is None
        assert shared.workspace_of("abc.localhost") is None
        assert shared.sources == ""


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CODEHUB_WORKSPACE_DOMAIN": "labs.example.net"}, "CODEHUB_PUBLIC_URL"),
        ({"CODEHUB_WORKSPACE_DOMAIN": "*.x", "CODEHUB_PUBLIC_URL": "https://a.example"}, "not a domain"),
        ({"CODEHUB_WORKSPACE_DOMAIN": "example.org", "CODEHUB_PUBLIC_URL": "https://a.example.org"}, "lies below"),
    ],
)
def test_a_setting_that_cannot_work_is_said(env: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        of(**env)
