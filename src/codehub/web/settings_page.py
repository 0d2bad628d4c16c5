"""`/settings` and `/templates`, for admins: what is in force, where it came from, what is broken, what to install."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import Settings, meanings, overview
from codehub.templates import files
from codehub.web import ides_view, kinds_view
from codehub.web.forms import Posted
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of
from codehub.workspaces.finding import Usage

router = APIRouter(include_in_schema=False)
NEARLY = 0.9  # of a limit: worth a look


@dataclass(frozen=True)
class Limit:
    text: str
    name: str
    said: str
    used: int
    limit: int  # 0: none
    full: bool


@router.get("/settings")
async def show(request: Request, caller: Annotated[Principal, may(Action.SETTINGS_READ)]) -> Response:
    policy.require(caller, Action.SETTINGS_READ)
    services = services_of(request)
    groups = overview.in_force(services.settings, services.setting_sources)
    everything = "all" in request.query_params
    shown = groups if everything else [g for g in map(_changed, groups) if g.settings]
    locale = locale_for(request)
    limits = limits_of(await services.all_workspaces.usage(caller), services.settings, locale)
    return render(
        request,
        "settings.html",
        caller=caller,
        groups=shown,
        everything=everything,
        limits=limits,
        told=functools.partial(_told, locale.language),
    )


def _told(language: str, setting: overview.Setting) -> tuple[str, str]:
    return meanings.told(setting.described_as, setting.meaning, language)


def _changed(group: overview.Group) -> overview.Group:
    return overview.Group(group.name, tuple(s for s in group.settings if s.changed))


def limits_of(usage: Usage, settings: Settings, locale: Locale) -> Sequence[Limit]:
    limits = settings.limits
    known = (
        ("running", "CODEHUB_MAX_RUNNING_GLOBAL", usage.running, limits.max_running_global),
        ("running_of_one", "CODEHUB_MAX_RUNNING_PER_USER", usage.running_of_one, limits.max_running_per_user),
        ("kept_of_one", "CODEHUB_MAX_WORKSPACES_PER_USER", usage.kept_of_one, limits.max_workspaces_per_user),
        ("shares_of_one", "CODEHUB_MAX_SHARES_PER_WORKSPACE", usage.shares_of_one, limits.max_shares_per_workspace),
        ("starting", "CODEHUB_MAX_CONCURRENT_STARTS", usage.starting, settings.coordinator.max_concurrent_starts),
    )
    return [_limit(key, name, used, limit, locale) for key, name, used, limit in known]


def _limit(key: str, name: str, used: int, limit: int, locale: Locale) -> Limit:
    said = locale.say("settings_use" if limit else "settings_use_free", used=used, limit=limit)
    return Limit(locale.say(f"settings_{key}"), name, said, used, limit, bool(limit) and used >= NEARLY * limit)


@dataclass(frozen=True)
class Row:
    file: files.File
    title: str
    badge: str
    sign: str
    state: str
    why: str | None
    how: str | None = None  # a command that helps


@router.get("/templates")
async def show_templates(request: Request, caller: Annotated[Principal, may(Action.SETTINGS_READ)]) -> Response:
    policy.require(caller, Action.SETTINGS_READ)
    services, locale = services_of(request), locale_for(request)
    folder = services.settings.runtime.templates_dir
    found = await run_in_threadpool(files.look, folder, services.templates)
    rows = [_row(file, services, locale) for file in found]
    shown = [ides_view.shown(ide, locale, services.clock.now()) for ide in await services.ides.all(caller)]
    return render(request, "template_files.html", caller=caller, rows=rows, folder=folder, ides=shown)


@router.post("/templates/install")
async def install(request: Request, caller: Annotated[Principal, may(Action.IDE_INSTALL)], form: Posted) -> Response:
    """By the coordinator; the page shows how far it is."""
    await services_of(request).ides.install(caller, form.get("ide", ""))
    return RedirectResponse("/templates#ide", 303)


@router.post("/templates/cancel")
async def cancel(request: Request, caller: Annotated[Principal, may(Action.IDE_INSTALL)], form: Posted) -> Response:
    await services_of(request).ides.cancel(caller, form.get("ide", ""))
    return RedirectResponse("/templates#ide", 303)


def _row(file: files.File, services: Services, locale: Locale) -> Row:
    loaded = services.templates.find(file.name)
    title = loaded.title_in(locale.language) if loaded else file.name
    if file.problem:
        return Row(file, title, "wrong", "▲", locale.say("templates_broken"), file.problem)
    if file.overridden:
        return Row(file, title, "stored", "▣", locale.say("templates_overridden"), None)
    if loaded and services.templates.unavailable(file.name):
        why, how = kinds_view.why_missing(loaded, locale, installs=True)
        return Row(file, title, "new", "○", locale.say("templates_missing"), why, how)
    return Row(file, title, "running", "●", locale.say("templates_ready"), None)
