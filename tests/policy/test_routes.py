"""Every route of the API and every form of a page names its action; one that does not fails here."""

import importlib.resources
import re
from collections.abc import Iterable

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match

from codehub.http.access import Names, NeedsLogin, actions_of
from codehub.policy.actions import TABLE, Subject
from codehub.web import dashboard, entry
from codehub.web.app import create_app
from codehub.web.services import Services

# Pages that find out by themselves who comes: by a pass, a cookie or a token.
ASK_THEMSELVES = {
    "/w/{id}",
    "/w/{id}/{path:path}",
    "/_codehub/understood/{id}",
    "/_codehub/status/{id}",
    "/_codehub/news/{id}",
    "/_codehub/act/{id}",
    "/_codehub/cancelled/{id}",
    "/_codehub/handover",
}
# What a waiting token is enough for: it cannot be guessed, and stands for one place in one line.
BY_WAITING_TOKEN = {f"/api/v1/queue/{verb}" for verb in ("status", "stream", "enter", "leave")}
# Ways in: they begin without a login.
WAYS_IN = {
    "/api/v1/login",
    "/api/v1/join",
    "/api/v1/join/passkey-question",
    "/api/v1/passkeys/question",
    "/api/v1/passkeys/login",
}
FORM = re.compile(r'<form [^>]*action="([^"]*)"')
VERB = re.compile(r'form\(t, [\w.]+, "(\w+)"')


def undeclared(routes: Iterable[BaseRoute]) -> list[str]:
    return [getattr(route, "path", repr(route)) for route in routes if len(actions_of(route)) != 1]


def templates() -> str:
    folder = importlib.resources.files("codehub.web") / "templates"
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".html"))


async def test_every_route_names_one_action_and_a_new_one_without_is_found(services: Services) -> None:
    app = create_app(services)
    assert len(app.routes) > 40
    assert undeclared(app.routes) == []

    async def forgotten() -> None: ...

    copy = FastAPI()
    copy.router.routes.extend(app.routes)
    copy.add_api_route("/api/v1/forgotten", forgotten)
    copy.mount("/more", FastAPI(openapi_url=None))
    found = undeclared(route for route in copy.routes if not getattr(route, "path", "").startswith(("/docs", "/redoc")))
    assert sorted(found) == ["/api/v1/forgotten", "/more", "/openapi.json"]


async def test_what_the_api_offers_needs_a_login_and_what_needs_none_is_public_by_name(services: Services) -> None:
    for route in create_app(services).routes:
        path, (action,) = getattr(route, "path", ""), actions_of(route)
        calls = [dependency.call for dependency in route.dependant.dependencies] if hasattr(route, "dependant") else []
        public = TABLE[action].subject is Subject.PUBLIC
        if path in BY_WAITING_TOKEN | WAYS_IN:
            assert public, path
        elif path.startswith("/api/"):
            assert any(isinstance(call, NeedsLogin) for call in calls), path
        elif not public and path not in ASK_THEMSELVES:
            assert any(isinstance(call, Names) and type(call) is not Names for call in calls), path
        assert public == action.startswith("public."), path


async def test_every_form_of_a_page_leads_to_a_route_that_names_its_action(services: Services) -> None:
    routes = create_app(services).routes
    sent = re.sub(r'<form [^>]*method="get"[^>]*>', "", templates())  # a search changes nothing
    forms = {re.sub(r"{{.*?}}", "x", action) for action in FORM.findall(sent)}
    assert len(forms) >= 5
    for path in forms:
        scope = {"type": "http", "method": "POST", "path": path, "root_path": "", "headers": []}
        fits = [route for route in routes if route.matches(scope)[0] is Match.FULL]
        assert fits, path
        assert undeclared(fits) == [], path


def test_every_verb_of_a_form_names_its_action() -> None:
    used = set(VERB.findall(templates()))
    assert used
    assert used <= set(dashboard.VERBS)
    named = [action for action, _ in dashboard.VERBS.values()] + list(entry.ACTIONS.values())
    assert all(action.startswith("workspace.") for action in named)
