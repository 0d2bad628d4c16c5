"""REST about passkeys: those of a person, and logging in with one.

Both take two requests: the first asks for a question, which a browser puts to the passkey; the second has the answer.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from codehub import ids
from codehub.auth.logins import Browser
from codehub.errors import UnauthenticatedError
from codehub.http import fields, paging, provide
from codehub.http.access import may, names, origin_of, set_cookie, spend_creation, visitor
from codehub.http.problems import documented
from codehub.passkeys.model import Passkey
from codehub.passkeys.service import Passkeys, Question
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Name = Annotated[str, Path(description="A user's name.", max_length=200, pattern=fields.NO_NUL, examples=["mina"])]
Id = Annotated[str, Path(description="A passkey's id.", max_length=200, pattern=fields.NO_NUL)]
Base64 = Annotated[str, Field(min_length=1, max_length=16_384, pattern="^[A-Za-z0-9_-]+$")]
NO_LOGIN: dict[str, Any] = {"security": []}  # of the documentation: none is asked for
HELD = re.compile(r"[A-Za-z0-9_-]{43}")
COOKIE = "codehub-passkey"  # binds a question to the browser that asked for it


class _AsBrowsersWrite(BaseModel):
    """Browsers send more from one version to the next."""

    model_config = ConfigDict(extra="ignore")


class Attestation(_AsBrowsersWrite):
    clientDataJSON: Base64  # noqa: N815 (the standard's name, as the others)
    attestationObject: Base64  # noqa: N815
    transports: list[Annotated[str, Field(max_length=32)]] = Field(default=[], max_length=16)


class Assertion(_AsBrowsersWrite):
    clientDataJSON: Base64  # noqa: N815
    authenticatorData: Base64  # noqa: N815
    signature: Base64
    userHandle: Base64 | None = None  # noqa: N815


class CreatedCredential(_AsBrowsersWrite):
    id: Base64
    rawId: Base64  # noqa: N815
    type: Literal["public-key"]
    response: Attestation


class UsedCredential(_AsBrowsersWrite):
    id: Base64
    rawId: Base64  # noqa: N815
    type: Literal["public-key"]
    response: Assertion


class PasskeyIn(fields.Body):
    credential: CreatedCredential = Field(description="What `navigator.credentials.create` gave, as JSON.")
    label: fields.Name | None = Field(default=None, description="Unset: from what the browser says it is.")


class PasskeyChange(fields.Body):
    label: fields.Name


class PasskeyLogin(fields.Body):
    credential: UsedCredential = Field(description="What `navigator.credentials.get` gave, as JSON.")
    instead_of: str | None = Field(
        default=None, max_length=63, description="Who is logged in with this browser, and will not be any more."
    )


class PasskeyOut(BaseModel):
    id: str
    label: str
    belongs_to: str = Field(description="The platform's name when it was made; at another one it does not work.")
    created_at: datetime
    last_used_at: datetime | None
    blocked_at: datetime | None = Field(description="Its counter went back: it may have been copied, and is refused.")


class QuestionOut(BaseModel):
    options: dict[str, Any] = Field(description="`publicKey` for `navigator.credentials`, as JSON.")
    expires_in_seconds: int


class PasskeyLoginOut(BaseModel):
    name: str


def _passkey(found: Passkey) -> PasskeyOut:
    return PasskeyOut(**{name: getattr(found, name) for name in PasskeyOut.model_fields})


def _passkeys(request: Request) -> Passkeys:
    return provide.get(request, Passkeys)


def host_of(request: Request) -> str:
    return request.headers.get("host", "")


def cookie_name(settings: Settings) -> str:
    return f"__Host-{COOKIE}" if settings.secure else COOKIE


def holder_of(request: Request) -> str:
    """What this browser was given to hold; empty where that is nothing of ours, and of that no question is asked."""
    held = request.cookies.get(cookie_name(provide.get(request, Settings)), "")
    return held if HELD.fullmatch(held) else ""


@router.post(
    "/passkeys/question", dependencies=[names(Action.PUBLIC_LOGIN)], responses=documented(409), openapi_extra=NO_LOGIN
)
async def ask_for_login(request: Request, response: Response) -> QuestionOut:
    """The question that a passkey answers to log in. The browser holds a cookie until then."""
    holder = holder_of(request) or ids.new_secret()
    question = _passkeys(request).ask_to_log_in(holder, host_of(request))
    return asked(request, response, holder, question)


def asked(request: Request, response: Response, holder: str, question: Question) -> QuestionOut:
    """A question to a browser that nobody is logged in with, and what it holds until it answers."""
    settings = provide.get(request, Settings)
    flags = "; Secure" if settings.secure else ""
    response.headers.append(
        "set-cookie",
        f"{cookie_name(settings)}={holder}; Path=/; HttpOnly; SameSite=Strict; Max-Age={question.seconds}{flags}",
    )
    return QuestionOut(options=dict(question.options), expires_in_seconds=question.seconds)


@router.post(
    "/passkeys/login", dependencies=[names(Action.PUBLIC_LOGIN)], responses=documented(409, 413), openapi_extra=NO_LOGIN
)
async def log_in_by_passkey(request: Request, sent: PasskeyLogin) -> PasskeyLoginOut:
    """Sets the session's cookie."""
    return PasskeyLoginOut(name=await log_in(request, sent.credential.model_dump(), sent.instead_of))


async def log_in(request: Request, credential: object, instead_of: str | None) -> str:
    """Who it was; the answer carries the session's cookie. For pages, too."""
    try:
        caller = await visitor(request)
    except UnauthenticatedError:
        caller = None
    before = caller if caller and caller.session_id else None
    browser = Browser(request.headers.get("user-agent", ""), origin_of(request), before)
    done = await _passkeys(request).log_in(holder_of(request), host_of(request), credential, browser, instead_of)
    set_cookie(request, done.cookie)
    return done.name


@router.post("/users/{name}/passkey-question", responses=documented(404, 409))
async def ask_for_registration(
    request: Request, caller: Annotated[Principal, may(Action.PASSKEY_ADD)], name: Name
) -> QuestionOut:
    """The question that a new passkey answers. Only in a browser, for yourself."""
    question = await _passkeys(request).ask_to_register(caller, name, host_of(request))
    return QuestionOut(options=dict(question.options), expires_in_seconds=question.seconds)


@router.post("/users/{name}/passkeys", status_code=201, responses=documented(404, 409, 413))
async def add_passkey(
    request: Request, caller: Annotated[Principal, may(Action.PASSKEY_ADD)], name: Name, passkey: PasskeyIn
) -> PasskeyOut:
    await spend_creation(request, caller, "passkey")
    agent = request.headers.get("user-agent", "")
    sent = passkey.credential.model_dump()
    return _passkey(
        await _passkeys(request).register(caller, name, host_of(request), sent, label=passkey.label, agent=agent)
    )


@router.get("/users/{name}/passkeys", responses=documented(404))
async def list_passkeys(
    request: Request,
    caller: Annotated[Principal, may(Action.PASSKEY_LIST)],
    name: Name,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[PasskeyOut]:
    found = await _passkeys(request).page(caller, name, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, _passkey, lambda p: paging.at(p.created_at, p.id))


@router.patch("/users/{name}/passkeys/{id}", responses=documented(404, 413))
async def rename_passkey(
    request: Request,
    caller: Annotated[Principal, may(Action.PASSKEY_RENAME)],
    name: Name,
    id: Id,  # noqa: A002 (the path's)
    change: PasskeyChange,
) -> PasskeyOut:
    return _passkey(await _passkeys(request).rename(caller, name, id, change.label))


@router.delete("/users/{name}/passkeys/{id}", status_code=204, responses=documented(404, 409))
async def remove_passkey(
    request: Request,
    caller: Annotated[Principal, may(Action.PASSKEY_REMOVE)],
    name: Name,
    id: Id,  # noqa: A002 (the path's)
) -> None:
    """The last way in stays."""
    await _passkeys(request).remove(caller, name, id)
