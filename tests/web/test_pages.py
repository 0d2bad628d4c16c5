"""Languages, texts, and the documentation of the API, which needs nothing from anywhere else."""

import pathlib
import re
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
from jinja2 import nodes
from starlette.requests import Request

from codehub import web
from codehub.activity.what_if import Figures
from codehub.audit.codes import Code
from codehub.backup.model import Failure
from codehub.command import operator
from codehub.i18n.texts import choose
from codehub.ides.model import Problem
from codehub.openid.errors import LoginRefusedError
from codehub.passkeys.model import Obstacle
from codehub.policy.model import Role
from codehub.sessions.blueprint import Step
from codehub.sessions.model import SessionStatus
from codehub.waiting_room.model import MemberState
from codehub.web import (
    account,
    account_tokens,
    classes,
    dashboard,
    ides_view,
    operator_view,
    player,
    presentation,
    schedules,
    static_files,
    texts,
)
from codehub.web.first_steps_rules import Step as FirstStep
from codehub.web.frame_view import Cover
from codehub.web.operator import FIELDS
from codehub.web.rendering import error_page, templates
from codehub.workspaces.model import Operation
from tests.policy.test_routes import BY_WAITING_TOKEN, WAYS_IN
from tests.web.server import Site

PARTS = ("title", "body")
GAP = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize(
    ("asked", "remembered", "accepted", "language"),
    [
        (None, None, "", "en"),
        (None, None, "ko", "ko"),
        (None, None, "ko-KR,ko;q=0.9,en-US;q=0.8", "ko"),
        (None, None, "en-US,ko;q=0.9", "en"),
        (None, None, "en;q=0.1, ko;q=0.5", "ko"),
        (None, None, "kok, fr", "en"),
        (None, None, "fr-FR, ko;q=0.3", "ko"),
        (None, None, "ko;q=0, de", "en"),
        (None, None, "ko;q=lots", "en"),
        (None, None, ";;;,,,=", "en"),
        (None, "ko", "en", "ko"),
        ("en", "ko", "ko", "en"),
        ("xx", "xx", "ko", "ko"),
    ],
)
def test_which_language_is_spoken(asked: str | None, remembered: str | None, accepted: str, language: str) -> None:
    assert choose(accepted, asked, remembered) == language


def test_every_text_exists_in_both_languages_with_the_same_gaps() -> None:
    assert texts.TEXTS["en"].keys() == texts.TEXTS["ko"].keys()
    for key, english in texts.TEXTS["en"].items():
        assert sorted(GAP.findall(english)) == sorted(GAP.findall(texts.TEXTS["ko"][key])), key
        assert texts.TEXTS["ko"][key].strip()


def test_every_text_is_used_and_every_used_text_exists() -> None:
    used: set[str] = set()
    for name in templates.list_templates():
        source, _, _ = templates.loader.get_source(templates, name)  # type: ignore[union-attr]
        attributes = templates.parse(source).find_all(nodes.Getattr)
        used |= {node.attr for node in attributes if isinstance(node.node, nodes.Name) and node.node.name == "t"}
    assert used <= texts.TEXTS["en"].keys()
    known = texts.OWN["en"].keys()
    files = [path for path in pathlib.Path(web.__path__[0]).rglob("*") if path.suffix in {".py", ".html"}]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    in_code = {key for key in known if f'"{key}"' in code}
    assert sorted(known - used - in_code - _put_together()) == []


def _put_together() -> set[str]:
    """Texts whose name is made of a part and a word that is not written out: every word there is."""
    states = [*presentation.SIGNS, "waiting", *(operation.lower() for operation in Operation)]
    return {
        *(key for key in texts.TEXTS["en"] if key.startswith(("error_", "docs_", "refused_", "learn_refused_"))),
        *(
            key
            for key in texts.TEXTS["en"]
            if key.startswith(("account_refused_", "account_done_", "people_refused_", "people_done_"))
        ),
        *(
            key
            for key in texts.TEXTS["en"]
            if key.startswith(("join_form_", "join_name_", "join_display_name_", "join_password_"))
        ),
        *(key for key in texts.TEXTS["en"] if key.startswith("import_")),
        *(f"frame_{cover}{part}" for cover in Cover for part in ("", "_body", "_do")),
        *(f"operator_{column}" for column in operator_view.COLUMNS),
        *(f"operator_{part}_{name}" for part in ("range", "time") for name in operator_view.RANGES),
        *(f"operator_{name}_{part}" for name in operator_view.CHARTS for part in ("title", "about")),
        *(f"operator_what_if_{name}" for name in vars(Figures())),
        *(f"operator_field_{name}" for name in FIELDS),
        *(f"operator_wrong_{code}" for code in ("time", "days")),
        *(key for key in texts.TEXTS["en"] if key.startswith(("archive_wrong_", "diff_", "reach_"))),
        *(key for key in texts.TEXTS["en"] if key.startswith(("courses_plans", "draft_plans", "course_errors"))),
        *(key for key in texts.TEXTS["en"] if key.startswith("courses_sessions")),
        *(f"first_{step.key}{part}" for step in FirstStep for part in ("", "_short", "_body", "_done")),
        "first_end",
        "ide_failed",
        *(key for key in texts.TEXTS["en"] if key.startswith(("all_phase_", "all_sort_", "bulk_", "history_kind_"))),
        *(key for key in texts.TEXTS["en"] if key.startswith(("settings_", "storage_"))),
        *(f"audit_did_{code.replace('.', '_')}" for code in Code),
        *(f"backups_failed_{failure}" for failure in Failure),
        *(f"ide_{state}{part}" for state in ides_view.STATES for part in ("", "_body")),
        *(f"ide_failed_{problem}{part}" for problem in Problem for part in ("", "_advice")),
        *(key for key in texts.TEXTS["en"] if key.startswith("ide_step_")),
        *(f"valid_{how}" for how in classes.VALIDITIES),
        "done_schedule",
        *(f"done_schedule_{verb}" for verb in schedules.VERBS),
        *(f"account_{section}" for section in account.SECTIONS),
        *(f"passkeys_{obstacle}" for obstacle in Obstacle),
        *(f"provider_{refusal.kind}_{part}" for refusal in LoginRefusedError.__subclasses__() for part in PARTS),
        *(f"account_scope_{scope}" for scope in account_tokens.SCOPES),
        *(f"{part}_{status.lower()}" for part in ("session", "plan") for status in SessionStatus),
        *(f"closed_{status.lower()}{part}" for status in SessionStatus for part in ("", "_body")),
        *(f"{part}_{step.lower()}" for part in ("step", "outline") for step in Step),
        *(f"session_{verb}{part}" for verb in ("skip", "cancel", "anew") for part in ("", "_body", "_do", "_final")),
        *(f"session_done_{what}" for what in player.DONE.values()),
        *(f"now_{state}" for state in states),
        *(f"files_{how}" for how in presentation.Files),
        *(f"{part}_{verb}" for part in ("do", "busy") for verb in dashboard.VERBS),
        *(f"line_member_{state}" for state in MemberState),
        *(f"entry_limit_{whose}" for whose in ("mine", "theirs", "all")),
        *(f"entry_step_{step}" for step in ("files", "start", "open")),
        *(
            f"entry_{kind}{part}"
            for kind in ("stored", "new", "missing", "origin", "admin")
            for part in ("", "_body", "_do")
        ),
    }


async def test_pages_speak_the_browsers_language_and_remember_the_chosen_one(site: Site) -> None:
    async with site.client(**{"Accept-Language": "ko-KR,ko;q=0.9"}) as browser:
        async with browser.get("/") as answer:
            assert answer.headers["content-language"] == "ko"
            assert "accept-language" in answer.headers["vary"]
            page = await answer.text()
            assert '<html lang="ko">' in page
            assert texts.TEXTS["ko"]["sign_in_heading"] in page
        async with browser.get("/?lang=en") as answer:
            assert answer.headers["content-language"] == "en"
        async with browser.get("/docs") as answer:
            assert answer.headers["content-language"] == "en"
        async with browser.get("/?lang=%00") as answer:
            assert answer.headers["content-language"] == "en"


async def test_what_the_api_is_made_of_has_names_that_programs_can_use(nobody: aiohttp.ClientSession) -> None:
    """Generated clients call their types so."""
    async with nobody.get("/openapi.json") as answer:
        schemas = (await answer.json())["components"]["schemas"]
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == []
    assert {"HistoryEntryOut", "HistoryEntryPage", "AuditEntryOut", "AuditEntryPage", "WorkspacePage"} <= schemas.keys()


async def test_the_documentation_shows_every_operation_and_needs_nothing_from_elsewhere(
    nobody: aiohttp.ClientSession,
) -> None:
    async with nobody.get("/openapi.json") as answer:
        document = await answer.json()
    async with nobody.get("/docs") as answer:
        page = await answer.text()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) >= 15
    for operation in operations:
        assert page.count(f'id="{operation["operationId"]}"') == 1
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    for target in re.findall(r'(?:href|src|action)="([^"]*)"', page):
        assert target.startswith(("/", "#", "?")), target
        if target.startswith("#"):
            assert f'id="{target[1:]}"' in page, target
    assert "<script" not in page
    assert "style=" not in page


async def test_pages_name_only_files_that_are_there(site: Site, nobody: aiohttp.ClientSession) -> None:
    async with nobody.get("/") as answer:
        page = await answer.text()
    targets = set(re.findall(r'(?:href|src)="(/[^"]*)"', page))
    assert f"{static_files.address()}/codehub.css" in targets
    for target in targets:
        async with nobody.get(target) as answer:
            assert answer.status == 200, target


async def test_the_openapi_document_is_valid_and_says_what_each_error_looks_like(
    nobody: aiohttp.ClientSession,
) -> None:
    async with nobody.get("/openapi.json") as answer:
        document: dict[str, Any] = await answer.json()
    assert document["openapi"].startswith("3.1")
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    for reference in re.findall(r'"\$ref": "#/components/schemas/(\w+)"', str(document).replace("'", '"')):
        assert reference in document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["responses"].keys() & {"200", "201", "202", "204"}
            graded = path.endswith("/complete")  # a step; the framework's own 422 is nowhere
            assert ("422" in operation["responses"]) == graded
            if path in BY_WAITING_TOKEN:
                assert {"400", "404", "503"} <= operation["responses"].keys()
                assert operation["security"] == []
            elif path.startswith("/api/"):
                assert {"400", "401", "403", "503"} - {"400"} <= operation["responses"].keys()
                assert bool(operation["security"]) != (path in WAYS_IN)


async def test_what_is_not_there_is_said_between_the_same_links_as_elsewhere(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina", Accept="text/html") as browser:
        missing = (
            "/nothing-here",
            "/plans/nothing",
            "/workspaces/nothing",
            "/open/nothing",
            "/w/nothing/",
            "/wait/nothing",
        )
        for path, status in {**dict.fromkeys(missing, 404), "/people": 403, "/join": 200, "/join/BBBBBB": 404}.items():
            async with browser.get(path) as answer:
                shown = await answer.text()
                found = (answer.status, 'href="/learn"' in shown, 'action="/logout"' in shown)
                assert found == (status, True, True), path
    async with site.client(Accept="text/html") as stranger, stranger.get("/nothing-here") as answer:
        assert (answer.status, "/logout" in await answer.text()) == (404, False)


async def test_the_documentation_keeps_a_persons_navigation(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.TEACHER)
    async with site.browser("mina") as browser, browser.get("/docs") as answer:
        page = await answer.text()
    assert 'href="/learn"' in page
    assert 'action="/logout"' in page


async def test_what_passes_within_seconds_is_asked_for_again_unless_it_was_a_form(site: Site) -> None:
    for method, reloads in (("GET", True), ("POST", False)):
        scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "scheme": "http"}
        headers = [(b"accept", b"text/html"), (b"host", b"localhost")]
        request = Request({**scope, "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80)})
        request.state.request_id, request.state.address = "r", "127.0.0.1"
        found = await error_page(request, 503)
        assert found
        assert (b'http-equiv="refresh"' in found.body) == reloads
