"""REST about invitations, and `POST /api/v1/join`, which follows one."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from codehub import ids
from codehub.auth import password_rules
from codehub.auth.logins import Browser
from codehub.classes.api import ClassOut, Id
from codehub.classes.invitations import LONGEST_SECONDS, MOST_USES, USUAL_SECONDS, Invitations
from codehub.classes.joining import Joined, Joining, NewLearner, SentPasskey
from codehub.classes.model import Invitation
from codehub.errors import InvalidRequestError, LoggedInError, UnauthenticatedError
from codehub.http import fields, paging, provide
from codehub.http.access import base_url, may, names, origin_of, set_cookie, spend_change, spend_creation, visitor
from codehub.http.problems import documented
from codehub.passkeys import api as passkeys_api
from codehub.passkeys.api import CreatedCredential, QuestionOut
from codehub.passkeys.first import Asker
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Which = Annotated[str, Path(description="An invitation's id, or its code.", max_length=200, pattern=fields.NO_NUL)]


class InvitationIn(fields.Body):
    expires_in_seconds: Annotated[int, Field(strict=True, ge=60, le=LONGEST_SECONDS), fields.Whole] = USUAL_SECONDS
    max_uses: Annotated[int | None, Field(strict=True, ge=1, le=MOST_USES), fields.Whole] = Field(
        default=None, description="How many may come by it; unset: any number."
    )


class InvitationOut(BaseModel):
    id: str
    code: str = Field(examples=["KWRTBX"])
    url: str = Field(description="Where it is followed; also what a QR code of it says.")
    created_at: datetime
    expires_at: datetime
    max_uses: int | None
    uses: int


class ClassJoinIn(fields.Body):
    code: str = Field(max_length=200, pattern=fields.NO_NUL, description="Case, spaces and hyphens do not matter.")
    name: str | None = Field(default=None, max_length=63, pattern=fields.NO_NUL, examples=["mina"])
    display_name: fields.Line = Field(default="", max_length=100)
    password: str | None = Field(default=None, max_length=4 * password_rules.LONGEST)
    instead_of: str | None = Field(
        default=None, max_length=63, description="Who is logged in with this browser, and will not be any more."
    )
    credential: CreatedCredential | None = Field(
        default=None,
        description="Instead of a password: the answer to `/join/passkey-question`, by `navigator.credentials.create`.",
    )


class JoinQuestionIn(fields.Body):
    code: str = Field(max_length=200, pattern=fields.NO_NUL)
    name: str = Field(max_length=63, pattern=fields.NO_NUL, examples=["mina"])
    display_name: fields.Line = Field(default="", max_length=100)


class ClassJoinOut(BaseModel):
    name: str
    school_class: ClassOut = Field(serialization_alias="class")


def invitation_out(request: Request, found: Invitation) -> InvitationOut:
    shown = {name: getattr(found, name) for name in InvitationOut.model_fields if name != "url"}
    return InvitationOut(**shown, url=url_of(request, found.code))


def url_of(request: Request, code: str) -> str:
    return f"{base_url(request)}/join/{code}"


def _invitations(request: Request) -> Invitations:
    return provide.get(request, Invitations)


@router.post("/classes/{id}/invitations", status_code=201, responses=documented(404, 409, 413))
async def create_invitation(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_INVITE)],
    id: Id,  # noqa: A002 (the path's)
    body: InvitationIn | None = None,
) -> InvitationOut:
    """A code for a wall: whoever follows it chooses a name and a way in, and is a learner of this class."""
    await spend_creation(request, caller, "invitation")
    wanted = body or InvitationIn()
    made = await _invitations(request).create(caller, id, seconds=wanted.expires_in_seconds, max_uses=wanted.max_uses)
    return invitation_out(request, made)


@router.get("/classes/{id}/invitations", responses=documented(404))
async def list_invitations(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_INVITATIONS)],
    id: Id,  # noqa: A002 (the path's)
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[InvitationOut]:
    """Those that are not over."""
    found = await _invitations(request).page(caller, id, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, lambda i: invitation_out(request, i), lambda i: paging.at(i.created_at, i.id))


@router.delete("/classes/{id}/invitations/{invitation}", status_code=204, responses=documented(404))
async def revoke_invitation(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_INVITE)],
    id: Id,  # noqa: A002 (the path's)
    invitation: Which,
) -> None:
    """Whoever came by it stays."""
    await _invitations(request).revoke(caller, id, invitation)


@router.post(
    "/join",
    status_code=201,
    responses=documented(404, 409, 413),
    dependencies=[names(Action.PUBLIC_JOIN)],
    openapi_extra={"security": []},
)
async def join(request: Request, body: ClassJoinIn) -> ClassJoinOut:
    """Follow an invitation. With a name, and a password or a passkey: a new account, and a browser is logged in.
    Without a name: you, who are logged in.

    Wrong, used up, expired and revoked codes are 404 `INVITATION_NOT_FOUND`. Only wrong ones are slowed down.
    """
    joining, caller = provide.get(request, Joining), await visitor(request)
    if body.name is not None:
        joined = await _join_new(request, joining, body, caller)
        return _joined(joined)
    if caller is None:
        raise UnauthenticatedError("log in, or send a name and a password or a passkey for a new account")
    policy.require_scope(caller, Action.CLASS_JOIN)
    await spend_change(request, caller)
    return _joined(await joining.join(caller, body.code))


@router.post(
    "/join/passkey-question",
    responses=documented(404, 409, 413),
    dependencies=[names(Action.PUBLIC_JOIN)],
    openapi_extra={"security": []},
)
async def ask_for_passkey(request: Request, response: Response, body: JoinQuestionIn) -> QuestionOut:
    """The question that a new passkey answers, to follow an invitation without a password. The browser holds a cookie
    until then. The answer is worth something for this code and this name alone; nothing is reserved by asking.
    """
    held = passkeys_api.holder_of(request) or ids.new_secret()
    asker, new = Asker(held, passkeys_api.host_of(request)), NewLearner(body.name, body.display_name)
    question = await provide.get(request, Joining).ask_passkey(body.code, new, asker, request.state.address)
    return passkeys_api.asked(request, response, held, question)


def sent_passkey(request: Request, credential: object) -> SentPasskey:
    return SentPasskey(Asker(passkeys_api.holder_of(request), passkeys_api.host_of(request)), credential)


async def _join_new(request: Request, joining: Joining, body: ClassJoinIn, caller: Principal | None) -> Joined:
    if body.credential and body.password is not None:
        raise InvalidRequestError("send a password or a passkey, not both", field="credential")
    before = caller if caller and caller.session_id else None
    if before and before.name != body.instead_of:
        raise LoggedInError(f"{before.name} is logged in with this browser: log out first, or say `instead_of`")
    passkey = sent_passkey(request, body.credential.model_dump()) if body.credential else None
    new = NewLearner(body.name or "", body.display_name, body.password or "", passkey)
    browser = Browser(request.headers.get("user-agent", ""), origin_of(request), before)
    joined = await joining.join_new(body.code, new, browser)
    set_cookie(request, joined.cookie or "")
    return joined


def _joined(joined: Joined) -> ClassJoinOut:
    return ClassJoinOut(name=joined.name, school_class=ClassOut(**vars(joined.school_class)))
