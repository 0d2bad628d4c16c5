"""Templates become HTML, in the reader's language. Used by all pages, and by `problems` when a browser asked."""

import contextlib
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from codehub import invocation
from codehub.errors import CodeHubError
from codehub.http.access import is_local, visitor
from codehub.i18n.locales import Locale, zone
from codehub.i18n.texts import LANGUAGES, choose
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import static_files, texts
from codehub.web.services import services_of

LANGUAGE_COOKIE = "codehub_language"
ZONE_COOKIE = "codehub_zone"  # set by static/codehub.js
CODE = re.compile(r"`([^`]+)`")
YEAR = 365 * 86400
templates = Environment(
    loader=PackageLoader("codehub.web"), autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True
)


def _prose(text: str) -> Markup:
    """Descriptions are written for programmers: `this` is code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped)


templates.filters["prose"] = _prose
# For links that only some people have a use for: may this principal do that?
templates.globals["may"] = lambda principal, action: policy.allows(principal, Action(action))
templates.globals["has_classes"] = policy.has_classes
templates.globals["static"] = static_files.address()


def locale_for(request: Request) -> Locale:
    """How this reader is spoken to: as a person who is logged in said for themselves, else as their browser says."""
    own = _reader(request)
    own_language, own_zone = (own.language, own.time_zone) if own else (None, None)
    asked, remembered = request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE)
    language = choose(request.headers.get("accept-language", ""), asked, own_language, remembered)
    time_zone = own_zone or unquote(request.cookies.get(ZONE_COOKIE, ""))
    return Locale(language, zone(time_zone), texts.TEXTS[language])


def zone_name(request: Request, caller: Principal) -> str:
    """This person's time zone, or their browser's; where neither says one, UTC."""
    found = caller.time_zone or unquote(request.cookies.get(ZONE_COOKIE, ""))
    return found if zone(found) else "UTC"


def _reader(request: Request) -> Principal | None:
    """Who asked, as far as that was looked at before the page is made."""
    found: Principal | None = getattr(request.state, "reader", None)
    return found


def render(request: Request, template: str, status: int = 200, *, home_url: str = "", **values: Any) -> HTMLResponse:
    """`home_url`: where the dashboard is, for a page that is shown on a workspace's own origin."""
    locale = locale_for(request)
    language = locale.language
    shared = {
        "t": locale.texts,
        "locale": locale,
        "language": language,
        "languages": {code: (name, _in_language(request, code)) for code, name in LANGUAGES.items()},
        "own_language": own.language if (own := _reader(request)) else None,
        "reader": own if not home_url.rstrip("/") else None,  # who is logged in on this page's own origin
        "this_page": request.url.path,
        "events": getattr(request.state, "events", 0),
        "home_url": home_url.rstrip("/"),
        "codehub": invocation.CODEHUB if is_local(request) or _is_for_admins(values) else invocation.PLAIN,
    }
    html = templates.get_template(template).render(**shared, **values)
    response = HTMLResponse(html, status, {"content-language": language, "vary": "accept-language, cookie"})
    if request.query_params.get("lang") == language:
        secure = services_of(request).settings.secure
        response.set_cookie(
            LANGUAGE_COOKIE, language, max_age=YEAR, path="/", secure=secure, samesite="lax", httponly=True
        )
    return response


def _is_for_admins(values: Mapping[str, Any]) -> bool:
    """Is this page an admin's? Pages for a caller are given one."""
    caller = values.get("caller")
    return isinstance(caller, Principal) and policy.allows(caller, Action.USER_LIST)


def _in_language(request: Request, code: str) -> str:
    """This page in another language, with whatever else its address says."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "lang"]
    return f"?{urlencode([*kept, ('lang', code)])}"


def wants_page(request: Request) -> bool:
    """A person's browser on one of our pages, not a program: it gets an error it can read."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


async def error_page(request: Request, status: int) -> HTMLResponse | None:
    """What a person's browser shows instead of a problem; None when a program asked."""
    if not wants_page(request):
        return None
    caller = None
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:  # else nothing is asked that may be what is wrong
        with contextlib.suppress(CodeHubError):
            caller = await visitor(request)
    kind = {404: "lost", 413: "large", 503: "away"}.get(status, "broken" if status >= 500 else "refused")
    if status == 403 and request.method == "GET":
        kind = "closed"
    shown = {"kind": kind, "caller": caller, "request_id": request.state.request_id}
    # What passes within seconds is asked for again by itself, unless that would be to send a form.
    return render(request, "error.html", status, **shown, reloads=kind == "away" and request.method in {"GET", "HEAD"})
