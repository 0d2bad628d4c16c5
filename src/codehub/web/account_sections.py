"""What the sections of `/account` share: how a form leads back to its section, and what that section then says.

The address only names codes (`?at=SECTION&problem=CODE#SECTION`, or `&done=CODE`): a link cannot make our page say
anything else.
"""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from codehub.errors import CodeHubError
from codehub.web.forms import back
from codehub.web.rendering import locale_for

ACCOUNT = "/account"
CHOOSE = "/account/way-in"  # the page that asks for a way in after the first link
# Where forms are that choose a way in, by their `then`: the page that says what was refused, and where it goes on.
CHOOSING = {"choose": (CHOOSE, "/"), "welcome": ("/welcome/way-in", "/welcome/workspace")}


@dataclass(frozen=True)
class Said:
    """In the section `at`: the texts are `account_refused_CODE` (or `refused_CODE`) and `account_done_CODE`."""

    at: str = ""
    problem: str | None = None
    done: str | None = None


def back_to(
    section: str, *, problem: CodeHubError | str | None = None, done: str | None = None, page: str = ACCOUNT
) -> Response:
    """A problem is named by its code, and by the field where that says more."""
    code = _code(problem) if isinstance(problem, CodeHubError) else problem
    response = back(f"{page}?at={section}", problem=code, done=done)
    response.headers["location"] += f"#{section}"  # else a telephone shows the top of the page, as if nothing happened
    return response


def _code(error: CodeHubError) -> str:
    errors = error.extra.get("errors") or [{"field": ""}]
    return str(errors[0]["field"]).upper() or error.code


def said_of(request: Request) -> Said:
    query, locale = request.query_params, locale_for(request)
    problem, done = query.get("problem", "").lower(), query.get("done", "").lower()
    keys = (f"account_refused_{problem}", f"refused_{problem}", "refused_other")
    told = next(key for key in keys if locale.knows(key))
    did = f"account_done_{done}"
    return Said(
        query.get("at", ""),
        locale.say(told) if problem else None,
        locale.say(did) if done and locale.knows(did) else None,
    )
