"""Every page and every form of the application under attack, found by its routes: a new one is attacked, too.

Texts that people enter stay texts; no page allows a script or a style of its own, or another site's frame; no write
comes from another site's page; no address leads away.
"""

import pathlib
import re
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp
import pytest
from fastapi.routing import APIRoute

import codehub.web
from codehub.settings import Settings
from codehub.web import app
from tests.virtual_time import ManualClock
from tests.web.hostile import ELEMENT, KINDS, World, evil, hostile_world

# What the parts of an address stand for, by how it begins: the longest that fits. A new page is added here.
PARTS: dict[str, dict[str, str]] = {
    "/classes/{id}": {"id": "class", "session_id": "session", "name": "person", "verb": "=rename"},
    "/courses/drafts/{id}": {"id": "=draft", "key": "=one"},
    "/courses/{id}": {"id": "course", "key": "=one", "version": "=1"},
    "/plans/{id}": {"id": "plan"},
    "/sessions/{id}": {"id": "session"},
    "/workspaces/{id}": {"id": "workspace"},
    "/open/{id}": {"id": "workspace"},
    "/w/{id}": {"id": "workspace", "path": "=x"},
    "/_codehub/": {"id": "workspace"},
    "/bulk/{id}": {"id": "=bulk"},
    "/join/{code}": {"code": "code"},
    "/lines/{id}": {"id": "event", "verb": "=pause"},
    "/wait/{event}": {"event": "event"},
    "/login/{": {"provider": "=school", "secret": "=secret"},
    "/welcome/{step}": {"step": "=way-in"},
    "/do/account/": {"identity_id": "=identity", "provider": "=school"},
    "/do/classes/{id}": {
        "id": "class",
        "assignment_id": "=a",
        "hand_id": "hand",
        "schedule_id": "=s",
        "verb": "=rename",
    },
    "/do/courses/drafts/{id}": {"id": "=draft"},
    "/do/courses/{id}": {"id": "course"},
    "/do/login/": {"provider": "=school"},
    "/do/people/{name}": {"name": "=jun", "verb": "=deactivate"},
    "/do/sessions/{id}": {"id": "session"},
    "/do/backups/{id}": {"id": "=backup"},
    "/do/{id}": {"id": "workspace", "verb": "=rename"},
    "/api/v1/classes/{id}": {
        "id": "class",
        "assignment_id": "=a",
        "hand_id": "hand",
        "invitation": "=i",
        "name": "person",
        "schedule_id": "=s",
    },
    "/api/v1/admin/ides/{name}": {"name": "=code-server"},
    "/api/v1/courses/{id}": {"id": "course"},
    "/api/v1/plans/{id}": {"id": "plan"},
    "/api/v1/queue/events/{id}": {"id": "event"},
    "/api/v1/runs/{id}": {"id": "run", "index": "=0"},
    "/api/v1/sessions/{id}": {"id": "session"},
    "/api/v1/users/{name}": {
        "name": "=mina",
        "id": "=passkey1",
        "session_id": "=s",
        "token_id": "=t",
        "identity_id": "=i",
    },
    "/api/v1/workspaces/{id}": {"id": "workspace", "user": "=kim"},
}
# Pages that none of these people gets: they need a provider, a draft, a secret, a ticket, stand on another origin, or
# lead on to another page.
NOT_HERE = {
    *("/login/{provider}/callback", "/login/{provider}/leave", "/login/{secret}", "/account/link", "/bulk/{id}"),
    *("/courses/drafts/{id}", "/courses/drafts/{id}/preview", "/courses/drafts/{id}/preview/{key}"),
    *("/_codehub/begin", "/_codehub/enter", "/_codehub/handover", "/_codehub/status/{id}", "/_codehub/cancelled/{id}"),
    "/_codehub/news/{id}",
    *(
        "/w/{id}",
        "/w/{id}/{path:path}",
        "/join/{code}/login",
        "/login",
        "/templates",
        "/courses/{id}/preview",
        "/welcome",
    ),
}
# With this in its address a page shows more of what people wrote.
MORE = {"/sessions/{id}": "?run={run}&fence={fence}", "/courses/{id}/preview/{key}": "?step=1"}
WITHOUT_SECRETS = {"codehub_language", "codehub-next"}  # cookies that may have any name
ENDLESS = {"/api/v1/events", "/api/v1/queue/stream", "/api/v1/workspaces/{id}/logs/follow", "/_codehub/news/{id}"}
AWAY = ["//evil.example/x", "/\\evil.example", "https://evil.example", "javascript:a()", "/\t/evil.example"]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://w1.localhost:8000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example", "Authorization": "Basic eDp5"},
    {"Referer": "https://evil.example/page"},
]


def routes(*methods: str) -> Iterator[tuple[str, APIRoute]]:
    for router in app.ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted((route.methods or set()) & set(methods)):
                yield method, route


def address(route: APIRoute, ids: dict[str, str]) -> str:
    """Of something that is there."""
    starts = [start for start in PARTS if route.path.startswith(start)]
    parts = PARTS[max(starts, key=len)] if starts else {}

    def filled(found: re.Match[str]) -> str:
        assert found[1] in parts, f"{route.path}: say in PARTS what {{{found[1]}}} stands for"
        what = parts[found[1]]
        return what[1:] if what.startswith("=") else ids[what]

    return re.sub(r"\{(\w+)(?::path)?\}", filled, route.path)


WEB = pathlib.Path(codehub.web.__file__).parent


def names_that_are_read(by: str) -> list[str]:
    """As the pages' code has them: of fields of forms, or (by `quer`) of what addresses say."""
    found = {n for file in WEB.glob("*.py") for n in re.findall(rf'{by}\w*\.get\("([a-z_]+)"', file.read_text())}
    once = re.search(r"const ONCE = \[(.*)\]", (WEB / "static" / "codehub.js").read_text())
    assert once
    return sorted(found | set(re.findall(r"\w+", once[1])) | {"next", "then", "back", "url", "return_to"})


class Page(HTMLParser):
    """What a browser would find; `wrong` is what no page of ours has."""

    ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "poster", "data")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words, self.wrong = "", list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in (ELEMENT, "style", "base", "object", "embed") or (tag == "script" and "src" not in given):
            self.wrong.append(f"<{tag}>")
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        if given.get("http-equiv", "").lower() == "refresh" and "url" in given.get("content", "").lower():
            self.wrong.append("refresh")
        for name in self.ADDRESSES:
            scheme = re.sub(r"[\s\x00-\x1f]", "", given.get(name, "")).partition(":")[0].lower()
            if scheme in ("javascript", "vbscript", "data"):
                self.wrong.append(f"{tag} {name}={given[name]}")
        self.words += " ".join(("", *given.values()))

    def handle_data(self, data: str) -> None:
        self.words += data


def is_strict(policy: str, origin: str) -> bool:
    """No script or style but the platform's files, no other site's frame around it."""
    rules = {name: set(values) for name, *values in (rule.split() for rule in policy.split(";"))}
    inside = rules.get("frame-ancestors", {"*"}) <= {"'none'", "'self'", origin}
    loads = rules["default-src"] in ({"'self'"}, {"'none'"}) and "script-src" not in rules and "style-src" not in rules
    return inside and loads and rules["base-uri"] == rules["object-src"] == {"'none'"} and "unsafe" not in policy


@pytest.fixture
async def world(settings: Settings, clock: ManualClock, tmp_path: pathlib.Path) -> AsyncIterator[World]:
    async with hostile_world(settings, clock, tmp_path) as made:
        yield made


async def walk(
    world: World, browser: aiohttp.ClientSession, query: str = "", *, api: bool = False
) -> AsyncIterator[tuple[str, aiohttp.ClientResponse, str]]:
    """Every address that can be read, as this person's browser asks for it."""
    for _, route in routes("GET"):
        if route.path in ENDLESS or (not api and route.path.startswith(("/api/", "/openapi.json", "/metrics"))):
            continue
        path = address(route, dict(world.ids))
        for more in {query, query or MORE.get(route.path, "").format(**world.ids)}:
            async with browser.get(path + more, headers={"Accept": "text/html"}, allow_redirects=False) as answer:
                yield route.path, answer, (await answer.read()).decode("utf-8", "replace")


async def test_no_text_of_a_person_becomes_a_part_of_a_page_and_every_page_is_strict(world: World) -> None:
    reached, shown, wrong = set[str](), set[str](), list[str]()
    async with world.everybody() as browsers:
        for name, browser in browsers.items():
            async for path, answer, body in walk(world, browser, api=name == "admin"):
                assert answer.status != 500, (name, path, body[:300])
                if not is_strict(answer.headers["content-security-policy"], world.site.url):
                    wrong.append(f"{path}: {answer.headers['content-security-policy']}")
                assert answer.headers["x-content-type-options"] == "nosniff"
                if answer.status == 200:
                    reached.add(path)
                if answer.content_type == "text/html":
                    page = Page(body)
                    wrong += [f"{name} {path}: {what}" for what in page.wrong]
                    shown |= {kind for kind in KINDS if evil(kind) in page.words}
    assert wrong == []
    assert {
        route.path for _, route in routes("GET") if not route.path.startswith("/api/")
    } - reached - NOT_HERE == set()
    assert KINDS - shown == set()


async def test_what_an_address_says_stays_text_and_leads_nowhere_else(world: World) -> None:
    names, wrong = names_that_are_read("quer"), list[str]()
    own = urlsplit(world.site.url)
    async with world.everybody() as browsers:
        for value in (evil("address"), *AWAY):
            query = "?" + urlencode({name: value for name in names if name != "lang"})
            for name in ("nobody", "kim") if value in AWAY[:1] else ("kim",):
                async for path, answer, body in walk(world, browsers[name], query):
                    assert answer.status != 500, (path, value, body[:300])
                    wrong += [
                        f"{path} {value}: {what}" for what in Page(body).wrong if answer.content_type == "text/html"
                    ]
                    to = urlsplit(urljoin(world.site.url + path, answer.headers.get("location", "")))
                    if to.hostname not in (own.hostname, f"{world.ids['workspace']}.localhost") or to.port != own.port:
                        wrong.append(f"{path} {value}: leads to {to.geturl()}")
    assert wrong == []


async def test_every_form_leads_back_to_the_platform_whatever_it_is_sent(world: World) -> None:
    names, wrong = names_that_are_read(""), list[str]()
    own = urlsplit(world.site.url)
    async with world.everybody() as browsers:
        for _, route in routes("POST"):
            if route.path.startswith("/api/") or route.path in ("/logout", "/join/{code}/log-out"):
                continue
            path = address(route, dict(world.ids))
            for value in (evil("form"), *AWAY):
                form = dict.fromkeys(names, value)
                async with browsers["kim"].post(path, data=form, allow_redirects=False) as answer:
                    body = (await answer.read()).decode("utf-8", "replace")
                assert answer.status != 500, (path, value, body[:300])
                wrong += [f"{path} {value}: {what}" for what in Page(body).wrong if answer.content_type == "text/html"]
                to = urlsplit(urljoin(world.site.url + path, answer.headers.get("location", "")))
                if to.netloc != own.netloc:
                    wrong.append(f"{path} {value}: leads to {to.geturl()}")
    assert wrong == []


async def test_no_write_comes_from_another_sites_page(world: World) -> None:
    accepted = []
    async with world.everybody() as browsers:
        for method, route in routes("POST", "PUT", "PATCH", "DELETE"):
            path = address(route, dict(world.ids))
            for headers in FOREIGN:
                for name in ("admin", "nobody"):  # also a login is not another site's to begin
                    async with browsers[name].request(method, path, headers=headers, allow_redirects=False) as answer:
                        text = await answer.text()
                    if answer.status != 403 or "another site" not in text:
                        accepted.append((method, route.path, headers, answer.status))
                    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert accepted == []


async def test_behind_tls_every_cookie_is_secure_of_this_host_alone_and_closed_to_scripts(
    settings: Settings, clock: ManualClock, tmp_path: pathlib.Path
) -> None:
    """And what was in the browser before a login is not what it is known by afterwards."""
    found: list[str] = []
    tls = {"public_url": "https://codehub.example", "workspace_domain": "codehub-labs.example"}
    async with hostile_world(settings, clock, tmp_path, **tls) as world:
        had = ""  # the first browser has no cookie, the second one mina's, the last one kim's
        for name, before in (("mina", ""), ("kim", "mina")):
            link = (await world.site.login_link(name)).url("")
            form = {"instead_of": before}
            async with (
                world.site.client(Cookie=had) as browser,
                browser.post(link, data=form, allow_redirects=False) as answer,
            ):
                cookie = answer.headers["set-cookie"]
            assert cookie.partition(".")[0] != had.partition(".")[0]  # another session
            found, had = [*found, cookie], cookie.partition(";")[0]
        async with world.site.client(Cookie=had) as browser:
            async for _, answer, _ in walk(world, browser, "?lang=ko"):
                found += answer.headers.getall("set-cookie", [])
    assert {cookie.partition("=")[0] for cookie in found} >= {"__Host-codehub", "codehub_language"}
    for cookie in found:
        name, flags = cookie.partition("=")[0], {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly"} <= flags, cookie
        assert flags & {"samesite=lax", "samesite=strict"}, cookie
        assert not [flag for flag in flags if flag.startswith("domain")], cookie
        assert name.startswith("__Host-") or name in WITHOUT_SECRETS, cookie
