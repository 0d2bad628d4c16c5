"""`/storage`: what the garbage collection and the trash would remove, how large, when and why. For admins.

Looking is the coordinator's; a form asks for it, and the page shows what was found last.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.retention.preview import PURGED, TRASH, Thing
from codehub.web.forms import Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
WHY = {TRASH: "storage_why_trash", PURGED: "storage_why_purged"}


@dataclass(frozen=True)
class Row:
    kind: str
    name: str
    workspace: bool  # it has a page
    size: str | None
    goes: str
    why: str


@router.get("/storage")
async def show(request: Request, caller: Annotated[Principal, may(Action.STORAGE_PREVIEW)]) -> Response:
    services, locale, now = services_of(request), locale_for(request), services_of(request).clock.now()
    found = await services.previews.get(caller)
    return render(
        request,
        "storage.html",
        caller=caller,
        found=found,
        rows=[row_of(thing, locale, now) for thing in found.things],
        made=locale.time(found.made_at, now) if found.made_at else None,
        size=locale.size(found.bytes),
    )


@router.post("/storage/look")
async def look(request: Request, caller: Annotated[Principal, may(Action.STORAGE_PREVIEW)], _form: Posted) -> Response:
    await services_of(request).previews.ask(caller)
    return back("/storage")


def row_of(thing: Thing, locale: Locale, now: datetime) -> Row:
    soon = thing.goes_at <= now
    goes = locale.say("storage_soon") if soon else locale.say("storage_goes", time=locale.time(thing.goes_at, now))
    key = WHY.get(thing.why, f"rule_{thing.why}")
    why = locale.say(key) if locale.knows(key) else thing.why
    size = None if thing.bytes is None else locale.size(thing.bytes)
    return Row(locale.say(f"storage_{thing.kind}"), thing.name, thing.kind == "workspace", size, goes, why)
