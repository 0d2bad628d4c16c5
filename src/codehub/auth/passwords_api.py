"""REST about passwords: logging in with one, setting and removing it."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from codehub.auth import password_rules
from codehub.auth.logins import Browser
from codehub.auth.passwords import Passwords
from codehub.errors import UnauthenticatedError
from codehub.http import fields, provide
from codehub.http.access import may, names, origin_of, set_cookie, visitor
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Typed = Annotated[str, Field(min_length=1, max_length=password_rules.LONGEST)]


Name = Annotated[str, Path(description="A user's name.", examples=["mina"])]
Current = Annotated[
    Typed | None, Field(description="The one there is now: needed of the person themselves, if they have one.")
]


class PasswordIn(fields.Body):
    password: str = Field(
        max_length=4 * password_rules.LONGEST,
        description=f"{password_rules.SHORTEST} to {password_rules.LONGEST} characters, none of the most common ones "
        "and without the person's name.",
    )
    current_password: Current = None


class RemovalIn(fields.Body):
    current_password: Current = None


class LoginIn(fields.Body):
    name: Typed = Field(examples=["mina"])
    password: Typed
    instead_of: str | None = Field(
        default=None, max_length=63, description="Who is logged in with this browser, and will not be any more."
    )


class LoggedInOut(BaseModel):
    name: str


@router.post(
    "/login",
    summary="Log in with a password",
    dependencies=[names(Action.PUBLIC_LOGIN)],
    responses=documented(409, 413),
    openapi_extra={"security": []},
)
async def log_in(request: Request, login: LoginIn) -> LoggedInOut:
    """Sets the session's cookie. Whatever is wrong is said in the same words. Wrong tries slow down this person from
    this network, and nowhere else.
    """
    try:
        caller = await visitor(request)
    except UnauthenticatedError:
        caller = None
    before = caller if caller and caller.session_id else None
    browser = Browser(request.headers.get("user-agent", ""), origin_of(request), before)
    done = await provide.get(request, Passwords).log_in(login.name, login.password, browser, login.instead_of)
    set_cookie(request, done.cookie)
    return LoggedInOut(name=done.name)


@router.put("/users/{name}/password", status_code=204, responses=documented(404, 409, 413))
async def set_password(
    request: Request, caller: Annotated[Principal, may(Action.PASSWORD_CHANGE)], name: Name, change: PasswordIn
) -> None:
    """Logs the person's other browsers out."""
    await provide.get(request, Passwords).change(caller, name, change.password, change.current_password)


@router.delete("/users/{name}/password", status_code=204, responses=documented(404, 409, 413))
async def remove_password(
    request: Request,
    caller: Annotated[Principal, may(Action.PASSWORD_CHANGE)],
    name: Name,
    removal: RemovalIn | None = None,
) -> None:
    """Never the last way in."""
    await provide.get(request, Passwords).remove(caller, name, removal.current_password if removal else None)
