"""People of a class whose accounts its teachers look after: a list with its preview, a sheet of links, one person.

Links and passwords are shown once, by the page that answers the form, and are in no address.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.auth.profiles import Profile
from codehub.classes import roster
from codehub.classes.errors import ImportChangedError, ListRefusedError
from codehub.classes.importing import Preview
from codehub.classes.model import SchoolClass
from codehub.classes.sheets import Slip
from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError, PasswordRefusedError
from codehub.http import access
from codehub.http.access import spend_creation
from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import classes_view, qr
from codehub.web.forms import Posted, back, read_parts
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
LARGEST_LIST = 4 * roster.MOST_BYTES  # of which a person is told in words that a list is smaller
Manager = Annotated[Principal, may(Action.CLASS_MANAGE)]


async def _class(request: Request, caller: Principal, id_: str) -> SchoolClass:
    return await services_of(request).classes.require(caller, id_, Action.CLASS_MANAGE)


@router.get("/classes/{id}/import")
async def ask_list(request: Request, caller: Manager, id: str) -> Response:  # noqa: A002
    return _list_page(request, caller, await _class(request, caller, id))


@router.post("/classes/{id}/import")
async def take_list(request: Request, caller: Manager, id: str) -> Response:  # noqa: A002
    """First what will happen; with the preview's digest, just that. A file is kept as the text that was read from it,
    so that what is done, or changed, is what was seen.
    """
    found, importing = await _class(request, caller, id), services_of(request).importing
    parts = await read_parts(request, LARGEST_LIST)
    text = parts.get("list", b"").decode("utf-8", "replace").replace("\0", "")
    file, digest = parts.get("file", b""), parts.get("digest", b"").decode("ascii", "replace")
    if parts.get("again"):
        return _list_page(request, caller, found, text=text)
    encoding = None
    try:
        if file:
            text, encoding = roster.decoded(file)
        if digest:
            await spend_creation(request, caller, "import")
            await importing.perform(caller, id, text.encode(), digest)
            return back(f"/classes/{id}", done="imported")
        seen = await importing.preview(caller, id, text.encode())
    except ImportChangedError:
        seen = await importing.preview(caller, id, text.encode())
        return _list_page(request, caller, found, 409, text=text, seen=seen, problem=_words(request, "import_changed"))
    except ListRefusedError as e:
        said = _words(request, f"import_wrong_{e.reason.lower()}", n=e.n)
        return _list_page(request, caller, found, 400, text=text, problem=said)
    except CodeHubError as e:
        return _list_page(request, caller, found, e.status, text=text, problem=_words(request, _key(request, e)))
    return _list_page(request, caller, found, text=text, seen=seen, encoding=encoding)


def _list_page(
    request: Request,
    caller: Principal,
    found: SchoolClass,
    status: int = 200,
    *,
    text: str = "",
    seen: Preview | None = None,
    problem: str | None = None,
    encoding: str | None = None,
) -> Response:
    """`encoding`: of the file, where there is one."""
    return render(
        request,
        "class_import.html",
        status,
        caller=caller,
        k=found,
        text=text,
        seen=seen,
        problem=problem,
        encoding=encoding,
        most_bytes=roster.MOST_BYTES,
        most_people=roster.MOST_LINES,
    )


@router.get("/classes/{id}/sheet")
async def ask_sheet(request: Request, caller: Manager, id: str) -> Response:  # noqa: A002
    found = await _class(request, caller, id)
    only_here = classes_view.Reader(request, caller).only_here()
    return render(request, "class_sheet.html", caller=caller, k=found, slips=None, only_here=only_here)


@router.post("/classes/{id}/sheet")
async def make_sheet(request: Request, caller: Manager, id: str) -> Response:  # noqa: A002
    found, services, locale = await _class(request, caller, id), services_of(request), locale_for(request)
    await spend_creation(request, caller, "sheet")
    base, now = access.base_url(request), services.clock.now()
    made = sorted(await services.sheets.make(caller, id), key=lambda s: classes_view.by_name(s.display_name, s.name))
    # A QR code takes some milliseconds: others do not wait for those of a whole class.
    slips = await asyncio.to_thread(lambda: [_slip(slip, base, now, locale) for slip in made])
    only_here = classes_view.Reader(request, caller).only_here()
    return render(request, "class_sheet.html", caller=caller, k=found, slips=slips, only_here=only_here)


def _slip(slip: Slip, base: str, now: datetime, locale: Locale) -> dict[str, Any]:
    url = slip.link.url(base)
    return {
        "name": slip.name,
        "shown": slip.display_name,
        "url": url,
        "qr": qr.svg(url, locale.say("sheet_qr", name=slip.display_name)),
        "until": locale.dated(now + timedelta(seconds=slip.link.seconds)),
    }


@router.get("/classes/{id}/people/{name}")
async def show_person(request: Request, caller: Manager, id: str, name: str) -> Response:  # noqa: A002
    return await _person_page(request, caller, id, name)


@router.post("/classes/{id}/people/{name}/{verb}")
async def change_person(
    request: Request,
    caller: Manager,
    id: str,  # noqa: A002
    name: str,
    verb: str,
    form: Posted,
) -> Response:
    services, locale, done = services_of(request), locale_for(request), dict[str, Any]()
    await _looked_after(request, caller, id, name)
    try:
        if verb == "link":
            link = await services.people.make_login_link(caller, name)
            url = link.url(access.base_url(request))
            done = {"link": url, "qr": qr.svg(url, url), "valid": locale.length(link.seconds)}
        elif verb == "password":
            await services.passwords.change(caller, name, form.get("password", ""), None)
            done = {"done": locale.say("person_password_done")}
        elif verb == "name":
            await services.profiles.change(caller, name, Profile(display_name=form.get("display_name", "")))
            return back(f"/classes/{id}/people/{name}")
        else:
            raise NotFoundError("there is nothing here")
    except PasswordRefusedError as e:
        return await _person_page(
            request, caller, id, name, e.status, at=verb, problem=locale.say(f"join_{e.reason.lower()}", n=10)
        )
    except InvalidRequestError as e:
        said = locale.say("people_refused_display_name")
        return await _person_page(
            request, caller, id, name, e.status, at=verb, typed=form.get("display_name", ""), problem=said
        )
    return await _person_page(request, caller, id, name, **done)


async def _looked_after(request: Request, caller: Principal, id_: str, name: str) -> Any:
    """The member of this class, whose account this teacher looks after; for others there is none."""
    member = await services_of(request).classes.member(caller, id_, name)
    policy.require(caller, Action.LOGIN_LINK_CREATE, policy.account(name))
    if member.teaches:
        raise NotFoundError(policy.NO_SUCH_USER)
    return member


async def _person_page(
    request: Request, caller: Principal, id_: str, name: str, status: int = 200, **said: Any
) -> Response:
    member = await _looked_after(request, caller, id_, name)
    shown = {"problem": None, "at": None, "typed": None, "done": None, "link": None, "qr": None, "valid": None, **said}
    found = await _class(request, caller, id_)
    return render(request, "class_person.html", status, caller=caller, k=found, m=member, **shown)


def _key(request: Request, error: CodeHubError) -> str:
    key = f"refused_{error.code}".lower()
    return key if locale_for(request).knows(key) else "refused_other"


def _words(request: Request, key: str, **values: str | int) -> str:
    return locale_for(request).say(key, **values)
