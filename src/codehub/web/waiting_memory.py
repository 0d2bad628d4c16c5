"""What a browser keeps of its place in line: the token, since when, and what its person wanted to open. A cookie.

`waiting` writes and reads it. It is of one person: the next one who logs in with the same browser has none. Nothing in
it is trusted: the token is signed, and what was wanted is asked for by its person, who may open it or not.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from codehub import ids
from codehub.policy.model import Principal
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import LAB
from codehub.waiting_room.tokens import EVENT_ID
from codehub.web.services import services_of
from codehub.workspaces import git_rules

KEPT_SECONDS = 86400
SESSIONS = "/sessions"  # where people wait for a place in the lab while they learn
LONGEST = 200  # characters of each part of what was wanted
MOST_FIELDS = 12
LABELS = ("workspace", "session", "run", "template")
NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Want:
    """What the place is for: a workspace, a session's run, or a workspace that is still to be made."""

    workspace: str = ""
    session: str = ""
    run: str = ""
    fence: str = ""
    template: str = ""
    name: str = ""
    git_url: str = ""
    git_branch: str = ""

    @classmethod
    def of(cls, sent: Mapping[str, str]) -> "Want":
        """What has another shape is not wanted."""
        given = {f.name: sent.get(f.name, "")[:LONGEST] for f in fields(cls)}
        labels = {name: value if ids.is_label(value) else "" for name, value in given.items() if name in LABELS}
        fence = given["fence"] if NUMBER.fullmatch(given["fence"]) else "0"
        return cls(**{**given, **labels, **_git(sent), "fence": fence if labels["run"] else ""})

    @property
    def parts(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}


def _git(sent: Mapping[str, str]) -> dict[str, str]:
    """A part of an address would be another address."""
    url, branch = sent.get("git_url", ""), sent.get("git_branch", "")
    if git_rules.complaint(url):
        return {"git_url": "", "git_branch": ""}
    return {"git_url": url, "git_branch": "" if git_rules.branch_complaint(branch) else branch}


@dataclass(frozen=True)
class Kept:
    token: str = ""
    since: int | None = None  # the number of the event's log when they came
    want: Want = field(default_factory=Want)


def read(request: Request, caller: Principal, event: str) -> Kept:
    try:
        sent = dict(parse_qsl(request.cookies.get(_name(event), "")[:4000], max_num_fields=MOST_FIELDS))
    except ValueError:
        sent = {}
    if sent.get("person") != caller.id:
        return Kept()
    since = sent.get("since", "")
    token = sent.get("token", "")
    return Kept(
        token if _is_of(request, caller, token) else "", int(since) if NUMBER.fullmatch(since) else None, Want.of(sent)
    )


def _is_of(request: Request, caller: Principal, token: str) -> bool:
    """Not another person's, that a page of another origin has put there: its owner would take the turn.

    One that says nothing any more is the caller's, as far as is known: the page says that the place is gone.
    """
    try:
        return not token or services_of(request).waiting_streams.read(token).person == caller.id
    except TokenExpiredError:
        return True


def write(request: Request, response: Response, caller: Principal, event: str, kept: Kept) -> None:
    """It goes along only with what is asked below the event's own page; of `lab`, also with pages of sessions."""
    value = {"person": caller.id, "token": kept.token, "since": str(kept.since or 0), **kept.want.parts}
    _set(request, response, event, urlencode(value, quote_via=quote), KEPT_SECONDS)


def follow(request: Request, response: Response, caller: Principal, event: str, token: str) -> None:
    """Another token of this person may be the one that counts."""
    kept = read(request, caller, event)
    if token and token != kept.token:
        write(request, response, caller, event, replace(kept, token=token))


def forget(request: Request, response: Response, event: str) -> None:
    _set(request, response, event, "", 0)


def without_token(kept: Kept) -> Kept:
    return replace(kept, token="", since=None)


def _name(event: str) -> str:
    return f"codehub_wait_{event}"


def _set(request: Request, response: Response, event: str, value: str, age: int) -> None:
    """A name and a path of a cookie can hold only what is an event's id."""
    if EVENT_ID.fullmatch(event) is None:
        return
    secure = "; Secure" if services_of(request).settings.secure else ""
    for path in (f"/wait/{event}", *([SESSIONS] if event == LAB else [])):
        pair = f"{_name(event)}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}"
        response.headers.append("set-cookie", pair)
