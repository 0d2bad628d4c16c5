"""`/audit`, `/settings` and `/templates`: what admins read, by HTTP; and that no secret is in it."""

import dataclasses
import html
import json
import pathlib
import re
from typing import Any

import aiohttp
import pytest

from codehub.classes.model import MemberRole
from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import OpenIdConfig, Settings, load_checked, overview, sources, unknown_names
from codehub.settings.openid import Provider
from codehub.settings.overview import SOURCES, Source
from codehub.templates import files
from codehub.templates.loader import Templates
from codehub.web.services import Services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

PATHS = ("/audit", "/settings", "/settings?all=1", "/templates")


async def page(client: aiohttp.ClientSession, path: str, status: int = 200, language: str = "en") -> str:
    async with client.get(path, headers={"accept": "text/html", "accept-language": language}) as answer:
        assert answer.status == status, path
        return html.unescape(await answer.text())


def told(text: str) -> list[str]:
    return re.findall(r'data-code="([a-z_.]+)"', text.partition("found audit")[2])


@pytest.mark.parametrize("path", PATHS)
async def test_only_admins_read_them(site: Site, path: str) -> None:
    await site.services.people.create_user(operator(), "kim", Role.TEACHER)
    async with site.browser("kim") as kim:
        await page(kim, path, status=403)
    async with site.browser("admin") as admin:
        for language in ("en", "ko"):
            assert f'lang="{language}"' in await page(admin, path, language=language)


# --- audit ----------------------------------------------------------------------------------------------------------


async def test_what_was_done_is_found_by_person_by_code_and_by_day(site: Site, clock: ManualClock) -> None:
    people = site.services.people
    await people.create_user(operator(), "mina", Role.LEARNER, "김<미>나")
    await people.create_user(operator(), "jun", Role.LEARNER)
    first_day = clock.now().date().isoformat()
    await clock.advance(2 * 86400)
    await people.change_user(operator(), "mina", role=Role.TEACHER, active=None)
    third_day = clock.now().date().isoformat()
    async with site.browser("admin", Cookie="codehub_zone=UTC") as admin:
        found = {
            "?person=mina": ["user.change", "user.create"],
            "?person=nobody": [],
            "?person=mina&code=user.create": ["user.create"],
            "?code=user.change": ["user.change"],
            f"?person=mina&since={third_day}": ["user.change"],
            f"?person=mina&until={first_day}": ["user.create"],
            f"?person=mina&since={first_day}&until={third_day}": ["user.change", "user.create"],
        }
        assert {query: told(await page(admin, f"/audit{query}")) for query in found} == found
        wrong = await page(admin, "/audit?since=yesterday&code=nonsense")
        assert "A day is written as" in wrong
        assert 'value="yesterday"' in wrong
        async with admin.get("/audit?person=mina") as answer:
            text = await answer.text()
        assert "김&lt;미&gt;나 (mina)" in text
        assert "<미>" not in text
    async with (
        site.admin() as api,
        api.get("/api/v1/admin/audit", params={"person": "mina", "code": "user.change"}) as a,
    ):
        assert [item["code"] for item in (await a.json())["items"]] == ["user.change"]


async def test_a_line_is_a_sentence_with_names_and_its_code_is_beside_it(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    made = await site.services.classes.create(operator(), "2-B")
    await site.services.classes.add_member(operator(), made.id, "mina", MemberRole.LEARNER)
    async with site.browser("admin") as admin:
        english, korean = await page(admin, "/audit"), await page(admin, "/audit", language="ko")
    assert "added mina to the class 2-B" in english
    assert "mina님을 수업 2-B에 넣었습니다" in korean
    assert '<li title="class.member_add"' in english
    for shown, words in ((english, "added to a class"), (korean, "수업에 추가")):
        option = '<option value="class.member_add" title="class.member_add">'
        assert f"{option}{words}</option>" in shown


async def test_lines_that_nobody_expected_are_shown_as_they_are(site: Site) -> None:
    wild: list[tuple[str, Any]] = [
        ("from.the_future", {"user": "mina"}),
        ("user.create", {"role": ["<b>", {}]}),
        ("token.create", {"scopes": 3, "token_id": None}),
        ("class.member_add", {"user": {"name": "x"}, "owner": [1]}),
        ("archive.collect", {"bytes": "many", "rule": {}, "orphan_since": "yesterday"}),
        ("backup.delete", {"asked_at": 5}),
    ]
    async with site.services.database.connection() as c:
        for code, data in wild:
            add = "INSERT INTO audit_log (at, actor, code, subject, data) VALUES (now(), '{x}', $1, '{0}', $2)"
            await c.execute(add, code, data)
    async with site.browser("admin") as admin, admin.get("/audit", headers={"accept": "text/html"}) as answer:
        text = await answer.text()
        assert answer.status == 200
    assert {code for code, _ in wild} <= set(told(text))
    assert "<b>" not in text
    async with site.admin() as api, api.get("/api/v1/admin/audit") as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("since", "status"),
    [("2026-03-31T09:00:00Z", 200), ("0.5", 400), ("2026-03-31", 400), ("2026-03-31T09:00:00", 400), ("x", 400)],
)
async def test_moments_of_the_api_are_written_out(admin: aiohttp.ClientSession, since: str, status: int) -> None:
    async with admin.get("/api/v1/admin/audit", params={"since": since}) as answer:
        assert answer.status == status, await answer.text()


async def test_a_long_log_is_shown_page_by_page(site: Site) -> None:
    for number in range(60):
        await site.services.people.create_user(operator(), f"p{number}", Role.LEARNER)
    async with site.browser("admin") as admin:
        first = await page(admin, "/audit?code=user.create")
        (more,) = re.findall(r'href="(/audit\?[^"]*cursor=[^"]*)"', first)
        second = await page(admin, more)
    both = re.findall(r"\bp\d+\b", first.partition("found audit")[2] + second.partition("found audit")[2])
    assert {f"p{number}" for number in range(60)} <= set(both)
    assert (len(told(first)), len(told(second)) >= 10) == (50, True)


# --- settings -------------------------------------------------------------------------------------------------------

SECRETS = {
    "key": "signing-key-that-nobody-may-see",
    "database": "database-password-that-nobody-may-see",
    "redis": "redis-password-that-nobody-may-see",
    "openid": "openid-secret-that-nobody-may-see",
    "archive": "archive-secret-that-nobody-may-see",
    "token": "bootstrap-token-that-nobody-may-see",
}


def with_secrets(settings: Settings) -> Settings:
    """In every place that can have one."""
    everywhere = {}
    for group in dataclasses.fields(settings):
        values = getattr(settings, group.name)
        hidden = {
            f.name: f"secret-of-{f.name}-that-nobody-may-see"
            for f in dataclasses.fields(values)
            if f.metadata.get("secret")
        }
        everywhere[group.name] = dataclasses.replace(values, **hidden)
    storage = dataclasses.replace(
        settings.storage,
        database_url=f"postgresql://me:{SECRETS['database']}@db.example.org/codehub?sslpassword={SECRETS['key']}",
        redis_url=f"redis://:{SECRETS['redis']}@cache.example.org/0",
        archive_url=f"s3://me:{SECRETS['archive']}@store.example.org/bucket?secret_key={SECRETS['archive']}",
    )
    provider = Provider("school", "https://login.example.org", "codehub", SECRETS["openid"])
    return dataclasses.replace(settings, **{**everywhere, "storage": storage, "openid": OpenIdConfig((provider,))})


async def test_no_secret_is_anywhere_in_the_page(services: Services) -> None:
    await services.people.ensure_first_admin()
    hiding = dataclasses.replace(services, settings=with_secrets(services.settings))
    groups = overview.in_force(hiding.settings, {})
    hidden = [s.name for g in groups for s in g.settings if s.value == overview.HIDDEN]
    assert {"CODEHUB_SECRET_KEY", "CODEHUB_OPENID_SCHOOL_CLIENT_SECRET"} <= set(hidden)
    assert "nobody-may-see" not in repr(groups)
    async with serving(services) as site, site.browser("admin") as admin:
        object.__setattr__(services, "settings", hiding.settings)
        for path in ("/settings", "/settings?all=1", "/templates", "/audit"):
            text = await page(admin, path)
            assert "nobody-may-see" not in text, path
        shown = await page(admin, "/settings?all=1")
    assert "store.example.org" in shown
    assert overview.HIDDEN in shown


async def test_every_setting_is_there_with_its_meaning_its_default_and_where_it_came_from(services: Services) -> None:
    await services.people.ensure_first_admin()
    object.__setattr__(services, "setting_sources", {"CODEHUB_PORT": Source.FILE, "CODEHUB_HOST": Source.ENVIRONMENT})
    known = [s.name for g in overview.in_force(services.settings, {}) for s in g.settings]
    async with serving(services) as site, site.browser("admin") as admin:
        changed, everything = await page(admin, "/settings"), await page(admin, "/settings?all=1")
    assert all(f"<code>{name}</code>" in everything for name in known)
    assert re.findall(r"<dt><code>(\w+)</code>", changed) == ["CODEHUB_HOST", "CODEHUB_PORT"]
    assert "from the settings file" in changed
    assert "from the environment" in changed
    assert "default: 100" in everything


def test_where_a_setting_came_from_is_known_and_told_to_the_processes_that_we_start(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "codehub.toml"
    file.write_text(
        'CODEHUB_PORT = 8123\nCODEHUB_HOST = "127.0.0.1"\n[openid.my-school]\nissuer = "https://a.example"\n'
    )
    environ = {"CODEHUB_SETTINGS": str(file), "CODEHUB_HOST": "127.0.0.2", "OTHER": "x", "CODEHUB_LOG_LEVEL": ""}
    found = sources(environ)
    assert found["CODEHUB_PORT"] is Source.FILE
    assert found["CODEHUB_HOST"] is Source.ENVIRONMENT
    assert found["CODEHUB_OPENID_MY_SCHOOL_ISSUER"] is Source.FILE
    assert "CODEHUB_LOG_LEVEL" not in found
    child = {SOURCES: json.dumps(found), "CODEHUB_PORT": "8123", "CODEHUB_DATABASE_URL": "postgresql://x"}
    assert sources(child) == found
    assert unknown_names(child) == []
    settings, _ = load_checked({**child, "CODEHUB_DATA_DIR": str(tmp_path)})
    of = {s.name: s.source for g in overview.in_force(settings, sources(child)) for s in g.settings}
    assert of["CODEHUB_DATABASE_URL"] is Source.ITSELF
    assert of["CODEHUB_MAX_RUNNING_GLOBAL"] is Source.DEFAULT


async def test_limits_are_shown_beside_their_use(site: Site) -> None:
    for name in ("mina", "jun"):
        await site.services.people.create_user(operator(), name, Role.LEARNER)
        person = Principal(name, Role.LEARNER, ALL_SCOPES)
        for number in range(1 if name == "jun" else 3):
            wanted = Desired.STANDBY if number else Desired.RUNNING
            admitted(await site.services.workspaces.create(person, NewWorkspace(f"Lab {number}", "terminal", wanted)))
    async with site.browser("admin") as admin:
        text = await page(admin, "/settings")
    limits = site.services.settings.limits
    said = dict(
        re.findall(r"<code>(CODEHUB_\w+)</code></span></span>.*?<span class=\"use[^\"]*\">([^<]*)</span>", text)
    )
    assert said["CODEHUB_MAX_RUNNING_GLOBAL"] == f"2 of {limits.max_running_global}"
    assert said["CODEHUB_MAX_WORKSPACES_PER_USER"] == f"3 of {limits.max_workspaces_per_user}"


# --- templates ------------------------------------------------------------------------------------------------------


async def test_broken_templates_are_named_by_file_line_and_reason(services: Services, tmp_path: pathlib.Path) -> None:
    await services.people.ensure_first_admin()
    (tmp_path / "broken.toml").write_text('title = "Broken"\n\n[process\ncommand = ["x"]\n')
    (tmp_path / "typo.toml").write_text('title = "Typo"\n\n[process]\n# how\ncomand = ["<b>"]\n')
    (tmp_path / "terminal.toml").write_text('title = "Ours"\n[process]\ncommand = ["no-such-program"]\n')
    runtime = dataclasses.replace(services.settings.runtime, templates_dir=tmp_path)
    object.__setattr__(services, "settings", dataclasses.replace(services.settings, runtime=runtime))
    async with serving(services) as site, site.browser("admin") as admin:
        text = await page(admin, "/templates")
    assert "broken.toml:3" in text
    assert "typo.toml:5" in text
    assert "did you mean command?" in text
    assert "Replaced by the operator's file" in text
    assert "Changed since the start" in text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("title = 1\n", 1),
        ('title = "x"\n\n\nnonsense = 1\n', 4),
        ('title = "x"\n[process]\ncommand = ["x"]\n[limits]\nmemory_mb = "much"\n', 5),
        ('title = "x"\nlimits = 3\n[process]\ncommand = ["x"]\n', 2),
        ('title = "x"\n', None),
        ('title = "x\n', 1),
    ],
)
def test_the_line_of_what_is_wrong_is_found(tmp_path: pathlib.Path, text: str, line: int | None) -> None:
    (tmp_path / "t.toml").write_text(text)
    first = files.look(tmp_path, Templates({}, tmp_path))[0]
    assert first.problem
    assert first.line == line
