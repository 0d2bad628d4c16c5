"""REST about people: `/api/v1/me`, `/api/v1/users`, their tokens, sessions and login links."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator, BaseModel, Field

from codehub.auth import password_rules
from codehub.auth.model import AccessToken, BrowserSession, Person
from codehub.auth.passwords import Passwords
from codehub.auth.profiles import LONGEST, Profile, Profiles
from codehub.auth.removal import Removal
from codehub.auth.service import People
from codehub.http import fields, paging, provide
from codehub.http.access import base_url, may, spend_creation
from codehub.http.problems import documented
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Role, Scope

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Name = Annotated[str, Path(description="A user's name.", examples=["mina"])]
NAME = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"


def _name(sent: str) -> str:
    if not re.fullmatch(NAME, sent):
        raise ValueError("must be 1 to 63 small letters a to z, digits and hyphens, with no hyphen at either end")
    return sent


NewName = Annotated[
    str, Field(max_length=63, examples=["mina"], json_schema_extra={"pattern": NAME}), AfterValidator(_name)
]
PROFILE = {"display_name", "language", "time_zone"}
Days = Annotated[int, Field(strict=True, ge=1, le=3650), fields.Whole]


DisplayName = Annotated[
    fields.Line, Field(max_length=LONGEST, description="What others call them, in any script; empty: the name.")
]
Language = Annotated[Literal["en", "ko"] | None, Field(description="Of the pages they read; null: the browser's.")]
TimeZone = Annotated[
    str | None, Field(max_length=64, description="null: the browser's.", examples=["Asia/Seoul"], pattern=fields.NO_NUL)
]


class UserIn(fields.Body):
    name: NewName
    role: Role = Role.LEARNER
    display_name: DisplayName = ""
    password: str | None = Field(default=None, max_length=4 * password_rules.LONGEST, description="Unset: none yet.")


class UserChange(fields.Body):
    name: NewName | None = Field(default=None, description="A new one; the old one is never given again.")
    role: Role | None = None
    active: bool | None = Field(default=None, strict=True, description="false: out within seconds, workspaces asleep")
    display_name: DisplayName | None = None
    language: Language = None
    time_zone: TimeZone = None

    def profile(self) -> Profile:
        """What was sent, and nothing else: null is a value of two of these."""
        sent = {name: getattr(self, name) for name in self.model_fields_set & PROFILE}
        if sent.get("display_name", "") is None:
            sent["display_name"] = ""
        return Profile(**sent)


class UserOut(BaseModel):
    id: str = Field(description="Never changes, and is never given again.", examples=["u4f0c2b7a9d1e3f5"])
    name: str
    display_name: str
    role: Role
    active: bool
    language: str | None
    time_zone: str | None
    created_at: datetime
    last_login_at: datetime | None
    deactivated_at: datetime | None


class MeOut(UserOut):
    scopes: list[Scope]


class TokenIn(fields.Body):
    label: fields.Line = Field(default="", max_length=100, description="What it is for.")
    scopes: list[Scope] | None = Field(
        default=None, min_length=1, max_length=len(Scope), description="Unset: as much as you may."
    )
    expires_in_days: Days | None = None


class TokenOut(BaseModel):
    id: str
    label: str
    scopes: list[Scope]
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None


class NewTokenOut(TokenOut):
    token: str = Field(description="Shown this once.")


class LoginOut(BaseModel):
    id: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    user_agent: str
    current: bool


class LinkOut(BaseModel):
    url: str
    expires_in_seconds: int


def _user(person: Person) -> UserOut:
    return UserOut(**vars(person), active=person.active)


def _token(token: AccessToken) -> TokenOut:
    return TokenOut(**{name: getattr(token, name) for name in TokenOut.model_fields})


def _people(request: Request) -> People:
    return provide.get(request, People)


@router.get("/me", summary="Who am I?", responses=documented(404))
async def who_am_i(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)]) -> MeOut:
    person = await _people(request).get_user(caller, caller.name)
    return MeOut(**vars(person), active=person.active, scopes=sorted(caller.scopes))


@router.post("/users", status_code=201, responses=documented(409, 413))
async def create_user(request: Request, caller: Annotated[Principal, may(Action.USER_CREATE)], user: UserIn) -> UserOut:
    policy_rules.require(caller, Action.USER_CREATE)  # before the work of hashing
    new = None
    if user.password is not None:
        passwords, called = provide.get(request, Passwords), (user.name, user.display_name)
        new = await passwords.prepare(user.password, *called, address=caller.address)
    return _user(await _people(request).create_user(caller, user.name, user.role, user.display_name, new))


@router.get("/users")
async def list_users(
    request: Request,
    caller: Annotated[Principal, may(Action.USER_LIST)],
    role: Annotated[Role | None, Query()] = None,
    q: Annotated[str, Query(max_length=100, pattern=fields.NO_NUL, description="Part of a name or display name.")] = "",
    active: Annotated[bool | None, Query()] = None,
    limit: paging.Limit = 50,
    cursor: paging.NameCursor = None,
) -> paging.Page[UserOut]:
    wanted: dict[str, Any] = {"role": role, "text": q, "active": active}
    found = await _people(request).page_users(caller, after=cursor or "", limit=limit + 1, **wanted)
    return paging.page(found, limit, _user, lambda person: person.name)


@router.get("/users/{name}", responses=documented(404))
async def get_user(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)], name: Name) -> UserOut:
    return _user(await _people(request).get_user(caller, name))


@router.patch("/users/{name}", responses=documented(404, 409, 413))
async def change_user(
    request: Request, caller: Annotated[Principal, may(Action.USER_CHANGE)], name: Name, change: UserChange
) -> UserOut:
    """Display name, language and time zone by the person themselves, their teacher or an admin; the rest by admins."""
    people, profiles, sent = _people(request), provide.get(request, Profiles), change.model_fields_set
    if sent - PROFILE:
        policy_rules.require(caller, Action.USER_CHANGE)  # before anything is changed
    person = await profiles.change(caller, name, change.profile())
    if change.name is not None:
        person = await people.rename_user(caller, name, change.name)
    if sent & {"role", "active"}:
        person = await people.change_user(caller, person.name, role=change.role, active=change.active)
    return _user(person)


@router.delete("/users/{name}", status_code=204, responses=documented(404, 409))
async def remove_user(request: Request, caller: Annotated[Principal, may(Action.USER_REMOVE)], name: Name) -> None:
    """For good. What they did stays, without the name, which is never given again; their workspaces go to the trash."""
    await provide.get(request, Removal).remove(caller, name)


@router.post("/users/{name}/login-links", status_code=201, responses=documented(404, 409))
async def create_login_link(
    request: Request, caller: Annotated[Principal, may(Action.LOGIN_LINK_CREATE)], name: Name
) -> LinkOut:
    """A link that logs this person in, once. An earlier unused one stops working."""
    link = await _people(request).make_login_link(caller, name)
    return LinkOut(url=link.url(base_url(request)), expires_in_seconds=link.seconds)


@router.post("/users/{name}/tokens", status_code=201, responses=documented(404, 409, 413))
async def create_token(
    request: Request, caller: Annotated[Principal, may(Action.TOKEN_CREATE)], name: Name, token: TokenIn | None = None
) -> NewTokenOut:
    await spend_creation(request, caller, "token")
    wanted = token or TokenIn()
    scopes = None if wanted.scopes is None else frozenset(wanted.scopes)
    made = await _people(request).create_token(
        caller, name, label=wanted.label, scopes=scopes, days=wanted.expires_in_days
    )
    return NewTokenOut(**_token(made.token).model_dump(), token=made.secret)


@router.get("/users/{name}/tokens", responses=documented(404))
async def list_tokens(
    request: Request,
    caller: Annotated[Principal, may(Action.TOKEN_LIST)],
    name: Name,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[TokenOut]:
    found = await _people(request).page_tokens(caller, name, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, _token, lambda token: paging.at(token.created_at, token.id))


@router.delete("/users/{name}/tokens/{token_id}", status_code=204, responses=documented(404))
async def revoke_token(
    request: Request, caller: Annotated[Principal, may(Action.TOKEN_REVOKE)], name: Name, token_id: str
) -> None:
    await _people(request).revoke_token(caller, name, token_id)


@router.get("/users/{name}/sessions", responses=documented(404))
async def list_sessions(
    request: Request,
    caller: Annotated[Principal, may(Action.LOGIN_LIST)],
    name: Name,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[LoginOut]:
    """Browsers that are logged in."""
    found = await _people(request).page_sessions(caller, name, after=paging.place(cursor), limit=limit + 1)

    def show(s: BrowserSession) -> LoginOut:
        return LoginOut(
            **{k: v for k, v in vars(s).items() if k in LoginOut.model_fields}, current=s.id == caller.session_id
        )

    return paging.page(found, limit, show, lambda s: paging.at(s.created_at, s.id))


@router.delete("/users/{name}/sessions", status_code=204, responses=documented(404))
async def revoke_other_sessions(
    request: Request, caller: Annotated[Principal, may(Action.LOGIN_REVOKE)], name: Name
) -> None:
    """Logs all browsers out, but for the one that asks."""
    await _people(request).end_other_sessions(caller, name)


@router.delete("/users/{name}/sessions/{session_id}", status_code=204, responses=documented(404))
async def revoke_session(
    request: Request, caller: Annotated[Principal, may(Action.LOGIN_REVOKE)], name: Name, session_id: str
) -> None:
    await _people(request).revoke_session(caller, name, session_id)
