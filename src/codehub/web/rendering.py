"""Templates become HTML, in the reader's language. Used by `pages`, and by `problems` when a browser asked."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from codehub.web import texts

LANGUAGE_COOKIE = "codehub_language"
CODE = re.compile(r"`([^`]+)`")
YEAR = 365 * 86400
templates = Environment(
    loader=PackageLoader("codehub.web"), autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True
)


def _prose(text: str) -> Markup:
    """Descriptions are written for programmers: `this` is code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped)


templates.filters["prose"] = _prose


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    asked = request.query_params.get("lang")
    accepted = request.headers.get("accept-language", "")
    language = texts.choose(asked, request.cookies.get(LANGUAGE_COOKIE), accepted)
    shared = {"t": texts.TEXTS[language], "language": language, "languages": texts.LANGUAGES}
    html = templates.get_template(template).render(**shared, **values)
    response = HTMLResponse(html, status, {"content-language": language, "vary": "accept-language, cookie"})
    if asked == language:
        response.set_cookie(LANGUAGE_COOKIE, language, max_age=YEAR, path="/", samesite="lax", httponly=True)
    return response


def wants_page(request: Request) -> bool:
    """A person's browser on one of our pages, not a program: it gets an error it can read."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
