"""The API application: routers of all capabilities, problem bodies, middleware, documentation."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from codehub import __version__
from codehub.activity import api as activity_api
from codehub.activity import what_if_api
from codehub.assignments import api as assignments_api
from codehub.assignments import progress_api
from codehub.audit import api as audit_api
from codehub.auth import api as auth_api
from codehub.auth import passwords_api
from codehub.classes import api as classes_api
from codehub.classes import invitations_api, people_api, roster
from codehub.coordinator import api as coordinator_api
from codehub.courses import api as courses_api
from codehub.gate import hosts
from codehub.http import problems, provide
from codehub.ides import api as ides_api
from codehub.monitoring import api as monitoring_api
from codehub.openid import api as openid_api
from codehub.passkeys import api as passkeys_api
from codehub.schedules import api as schedules_api
from codehub.sessions import api as sessions_api
from codehub.sessions import practice_api, runs_api, schema_api, state
from codehub.settings import Settings
from codehub.templates import api as templates_api
from codehub.waiting_room import api as waiting_room_api
from codehub.waiting_room import events_api
from codehub.web import (
    account,
    account_devices,
    account_passkeys,
    account_password,
    account_profile,
    account_tokens,
    audit_page,
    backups_page,
    board,
    class_people,
    classes,
    course,
    course_import,
    course_preview,
    courses,
    dashboard,
    entry,
    everybodys,
    first_steps,
    frame,
    handover,
    health,
    join,
    learning,
    lines,
    live,
    login,
    operator,
    pages,
    people,
    player,
    player_help,
    player_line,
    provider_login,
    rendering,
    schedules,
    settings_page,
    sign_in,
    sign_in_passkey,
    static_files,
    storage_page,
    waiting,
)
from codehub.web.middleware import BodyLimit, HeadAsGet, OwnHosts, RequestContext, SameOriginWrites
from codehub.web.services import Services
from codehub.workspaces import api as workspaces_api
from codehub.workspaces import points_api, shares_api

ABOUT = "Self-hosted coding labs. Log in with a cookie, or send `Authorization: Bearer …`."
TAGS = [
    {"name": "workspaces"},
    {"name": "learning"},
    {"name": "queue"},
    {"name": "people"},
    {"name": "operations"},
    {"name": "health"},
]  # in the order of the documentation
ROUTERS = (
    health.router,
    workspaces_api.router,
    live.router,
    activity_api.router,
    points_api.router,
    shares_api.router,
    templates_api.router,
    schema_api.router,
    sessions_api.router,
    runs_api.router,
    practice_api.router,
    courses_api.router,
    assignments_api.router,
    schedules_api.router,
    progress_api.router,
    waiting_room_api.router,
    events_api.router,
    auth_api.router,
    passwords_api.router,
    classes_api.router,
    openid_api.router,
    invitations_api.router,
    passkeys_api.router,
    people_api.router,
    audit_api.router,
    coordinator_api.router,
    ides_api.router,
    monitoring_api.router,
    what_if_api.router,
    pages.router,
    login.router,
    sign_in.router,
    account_password.router,
    sign_in_passkey.router,
    account_profile.router,
    account_devices.router,
    account_passkeys.router,
    account_tokens.router,
    provider_login.router,  # before the dashboard's, as the next
    people.router,
    first_steps.router,
    account.router,  # before the dashboard's, whose forms are `/do/{id}/{verb}`
    everybodys.router,
    audit_page.router,
    settings_page.router,
    storage_page.router,
    backups_page.router,
    dashboard.router,
    learning.router,
    courses.router,
    course_import.router,  # before the next, whose pages are `/courses/{id}`
    course_preview.router,
    course.router,
    player.router,
    player_line.router,
    player_help.router,
    board.router,
    waiting.router,
    lines.router,
    operator.router,
    class_people.router,
    schedules.router,
    classes.router,
    join.router,
    handover.router,
    entry.router,
    frame.router,
)


def create_app(services: Services) -> FastAPI:
    settings = services.settings
    app = FastAPI(
        title="CodeHub",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        openapi_url=None,  # `pages` has it, for those who may
        redoc_url=None,
        redirect_slashes=False,  # it would send people to the Host they claim, by the wrong scheme behind TLS
        middleware=[
            Middleware(
                RequestContext, server=settings.server, secure=settings.secure, forms_to=services.origins.sources
            ),
            Middleware(OwnHosts, ours=hosts.of_settings(settings)),
            Middleware(HeadAsGet),
            Middleware(BodyLimit, limit=settings.server.max_body_bytes, larger=_larger_bodies(settings)),
            Middleware(SameOriginWrites, public_url=settings.server.public_url),
            Middleware(GZipMiddleware, minimum_size=1024),
        ],
    )
    app.state.services = services
    provide.install(app, services.by_type())
    problems.install(app, rendering.error_page)
    for router in ROUTERS:
        # Not `include_router`: it would work out every route a second time, at its first request.
        app.router.routes.extend(router.routes)
    app.mount("/static", static_files.static_files(), name="static")
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _larger_bodies(settings: Settings) -> dict[str, int]:
    """What carries texts: what is learnt, and what a learner's page saves."""
    written = settings.sessions.max_plan_bytes
    saved = max(settings.server.max_body_bytes, 4 * state.MOST_BYTES)  # as JSON with every character escaped
    return {
        "/api/v1/classes/": roster.MOST_BYTES,
        "/classes/": class_people.LARGEST_LIST,
        course_import.PAGE: course_import.LARGEST_FORM,
        "/api/v1/plans": written,
        "/api/v1/courses": written,
        "/api/v1/runs/": saved,
    }


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=TAGS
        )
        components = schema.setdefault("components", {})
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        _tidy_schemas(components.setdefault("schemas", {}))
        _name_templates(app, components["schemas"])
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                _tidy_operation(path, method, operation)
        app.openapi_schema = _name_pages(schema)
    return app.openapi_schema


def _tidy_schemas(schemas: dict[str, Any]) -> None:
    """Our problems instead of the framework's."""
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in (problems.Problem, problems.ErrorObject):
        described = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(described.pop("$defs", {}))
        schemas[model.__name__] = described


def _name_pages(schema: dict[str, Any]) -> dict[str, Any]:
    """By their titles, such as `WorkspacePage`: generated clients name their types by these."""
    text = json.dumps(schema)
    for name, described in schema["components"]["schemas"].items():
        if name.startswith("Page_"):
            text = text.replace(f'/{name}"', f'/{described["title"]}"').replace(
                f'"{name}":', f'"{described["title"]}":'
            )
    named: dict[str, Any] = json.loads(text)
    return named


def _name_templates(app: FastAPI, schemas: dict[str, Any]) -> None:
    """Which templates there are is known here, and worth knowing."""
    services: Services = app.state.services
    names = [t.name for t in services.templates.all() if services.templates.unavailable(t.name) is None]
    schemas["WorkspaceIn"]["properties"]["template"]["enum"] = names


def _tidy_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    if operation["responses"].get("422", {}).get("description") == "Validation Error":  # the framework's
        operation["responses"].pop("422")
    if path.startswith("/api/") and method != "get":
        objects = path.startswith(problems.ERROR_OBJECTS_BELOW)
        too_many = (problems.documented_objects if objects else problems.documented)(429)
        operation["responses"] |= {str(s): r for s, r in too_many.items()}  # so many in a minute
    operation["summary"] = operation["summary"].capitalize() if operation["summary"].istitle() else operation["summary"]
    operation["responses"] = dict(sorted(operation["responses"].items()))
    for status, response in operation["responses"].items():
        if response["description"] == "Successful Response":
            response["description"] = HTTPStatus(int(status)).phrase
    if path.startswith("/api/"):
        operation.setdefault("security", [{"bearer": []}])
