"""Whose name a request is for: ours, or somebody's who pointed a name of theirs at this machine."""

import socket
from ipaddress import ip_network

import pytest

from codehub import settings as config
from codehub.command import operator
from codehub.gate import hosts
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.gate.lab import PAGE, Lab, problem
from tests.virtual_time import ManualClock
from tests.web.server import ADMIN_TOKEN, Site, serving, serving_with

DOMAIN = {
    "CODEHUB_HOST": "0.0.0.0",
    "CODEHUB_PUBLIC_URL": "https://codehub.example.org",
    "CODEHUB_WORKSPACE_DOMAIN": "labs.example.net",
}
ADDRESSES = [
    "127.0.0.1:8000",
    "192.0.2.7",
    "[::1]:8000",
    "[2001:db8::7]",
    "localhost:8000",
    "LOCALHOST.",
    "127.1.2.3:1",
]
THEIRS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evillocalhost",
    "a.b.localhost",
    ".localhost",
]


@pytest.mark.parametrize(
    ("env", "ours", "theirs"),
    [
        ({}, ["abc.localhost:8000", "ABC.localhost."], ["codehub.example.org", socket.gethostname(), "-a.localhost"]),
        (
            DOMAIN,
            ["codehub.example.org", "CODEHUB.example.org:443", "abc.labs.example.net"],
            ["labs.example.net", "a.b.labs.example.net", "abc.localhost", "xlabs.example.net", "example.org"],
        ),
        (
            {"CODEHUB_HOST": "0.0.0.0"},
            [f"{socket.gethostname()}:8000", f"{socket.gethostname()}.local"],
            ["abc.localhost", "codehub.example.org"],
        ),
        ({"CODEHUB_HOST": "lab-server"}, ["lab-server:8000"], ["abc.localhost"]),
        ({"CODEHUB_ALLOWED_HOSTS": "codehub, Codehub.Internal"}, ["codehub:8000", "codehub.internal"], ["internal"]),
    ],
)
def test_names_that_are_ours(env: dict[str, str], ours: list[str], theirs: list[str]) -> None:
    known = hosts.of_settings(config.load({"CODEHUB_DATA_DIR": "/nowhere", **env}))
    assert [host for host in ADDRESSES + ours if not known.accepts(host)] == []
    assert [host for host in THEIRS + theirs if known.accepts(host)] == []


async def test_somebody_elses_name_gets_nothing_of_ours(lab: Lab) -> None:
    """DNS rebinding: for the victim's browser everything here is then the attacker's own origin."""
    w = await lab.running()
    evil = {"Host": f"evil.example:{lab.url.rpartition(':')[2]}"}
    bearer = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with lab.browser("admin") as browser:
        for path in ("/", "/api/v1/workspaces", "/healthz", "/static/codehub.css", f"/w/{w.id}/", "/_codehub/begin"):
            for method in ("GET", "POST"):
                async with browser.request(method, lab.url + path, headers={**evil, **bearer}) as answer:
                    assert await problem(answer) == (421, "MISDIRECTED_REQUEST"), path
        assert lab.ide.requests == []
        async with browser.get(lab.url, headers={**evil, **PAGE, "Accept-Language": "ko"}) as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (421, "text/html; charset=utf-8")
            text = await answer.text()
            assert "이 주소로는 CodeHub를 열 수 없습니다" in text
            assert "evil" not in text
        async with browser.get(lab.url + "/healthz") as answer:
            assert answer.status == 200


async def test_the_api_says_the_same_where_it_runs_alone(lab: Lab) -> None:
    async with serving(lab.services) as site, site.client(ADMIN_TOKEN) as client:
        async with client.get("/api/v1/me", headers={"Host": "evil.example"}) as answer:
            assert await problem(answer) == (421, "MISDIRECTED_REQUEST")
        async with client.get("/", headers={"Host": "a" * 300 + ".example", **PAGE}) as answer:
            assert answer.status == 421
            assert "does not go by this name" in await answer.text()
        for host in ("127.0.0.1", "[::1]:80", "localhost"):
            async with client.get("/healthz", headers={"Host": host}) as answer:
                assert answer.status == 200


OPERATORS = ("/metrics", "/docs", "/openapi.json")


async def statuses(site: Site | Lab, headers: dict[str, str], token: str | None = None) -> set[int]:
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    async with Site(site.url, site.services).client() as client:
        found = set()
        for path in OPERATORS:
            async with client.get(path, headers={**headers, **bearer}) as answer:
                found.add(answer.status)
        return found


async def test_numbers_and_descriptions_are_for_this_machine_and_for_those_who_log_in(lab: Lab) -> None:
    teacher = await lab.services.people.create_user(operator(), "mina", Role.TEACHER)
    token = await Site(lab.url, lab.services).token(teacher.name)
    async with serving(lab.services) as alone:
        for door in (lab, alone):
            assert await statuses(door, {}) == {200}
            for said in (
                {"X-Forwarded-For": "192.0.2.1"},
                {"Forwarded": "for=192.0.2.1"},
                {"X-Real-IP": "127.0.0.1"},
                {"Via": "1.1 x"},
            ):
                assert await statuses(door, said) == {401}
                assert await statuses(door, said, ADMIN_TOKEN) == {200}
                assert await statuses(door, said, token) == {200, 403}  # the numbers are the operators'


async def test_through_a_trusted_proxy_and_from_other_networks_one_logs_in(
    settings: Settings, clock: ManualClock
) -> None:
    trusted = {"trusted_proxies": (ip_network("127.0.0.0/8"),), "public_url": "https://codehub.example"}
    away = {"Host": "codehub.example", "X-Forwarded-For": "192.0.2.9"}
    async with serving_with(settings, clock, **trusted) as site:
        assert await statuses(site, away) == {401}
        assert await statuses(site, {"Host": "codehub.example"}) == {401}
        assert await statuses(site, {}) == {200}
    trusted["metrics_networks"] = (ip_network("192.0.2.0/24"),)
    async with serving_with(settings, clock, **trusted) as site:
        assert await statuses(site, away) == {200, 401}
