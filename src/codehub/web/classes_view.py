"""What the pages of a class show, in words. Used by `classes`."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import Request
from markupsafe import Markup

from codehub.classes import codes
from codehub.classes.model import Invitation, Member, SchoolClass
from codehub.classes.overview import Glance
from codehub.errors import ForbiddenError, NotFoundError
from codehub.hostnames import is_loopback
from codehub.http import access, paging
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import presentation, qr
from codehub.web.rendering import locale_for
from codehub.web.services import services_of
from codehub.workspaces.model import Workspace

MOST_INVITATIONS = 50


@dataclass(frozen=True)
class Invited:
    """An invitation in words."""

    id: str
    code: str
    spaced: str
    url: str
    address: str  # as it is typed
    qr: Markup
    until: str
    uses: str
    is_full: bool


@dataclass(frozen=True)
class Pill:
    id: str
    name: str
    badge: str
    sign: str
    state: str


@dataclass(frozen=True)
class Learner:
    name: str
    shown: str
    seen: str
    workspaces: Sequence[Pill]
    session: str | None
    step: str
    session_id: str | None
    waits: bool
    managed: bool
    active: bool


@dataclass(frozen=True)
class Board:
    teachers: Sequence[Member]
    learners: Sequence[Learner]
    invitations: Sequence[Invited]
    only_here: str | None  # a text's key: why a code would work on this machine alone
    members_at_most: int


def problem_of(request: Request) -> str | None:
    """What was refused, in words. The address only names a code: a link cannot make our page say anything else."""
    code, locale = request.query_params.get("problem"), locale_for(request)
    key = f"refused_{code}".lower()
    return locale.say(key if locale.knows(key) else "refused_other") if code else None


def by_name(shown: str, name: str) -> tuple[str, str]:
    """People stand in the order of what they are called, as in a class's own list: 가나다, then those of one name."""
    return shown.casefold(), name


class Reader:
    """One request's view."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self.request = request
        self.services = services_of(request)
        self.caller = caller
        self.locale = locale_for(request)
        self.now = self.services.clock.now()

    async def manages(self, class_id: str) -> bool:
        """Do they see who is in it?"""
        try:
            await self.services.classes.members(self.caller, class_id, after="", limit=1)
        except ForbiddenError:
            return False
        return True

    async def board(self, found: SchoolClass) -> Board:
        teachers, glances = await self.services.overview.of(self.caller, found.id)
        invitations = await self.services.invitations.page(
            self.caller, found.id, after=paging.place(None), limit=MOST_INVITATIONS
        )
        return Board(
            teachers,
            sorted((self._learner(glance) for glance in glances), key=lambda one: by_name(one.shown, one.name)),
            [self._invited(i) for i in reversed(invitations)],
            self.only_here(),
            self.services.settings.limits.max_class_members,
        )

    async def invitation(self, class_id: str, which: str | None) -> Invited | None:
        """The one that is asked for, or the newest one that lets people in."""
        found = await self.services.invitations.page(
            self.caller, class_id, after=paging.place(None), limit=MOST_INVITATIONS
        )
        if which is not None:
            named = next((i for i in found if i.id == which), None)
            if named is None:
                raise NotFoundError("there is no such invitation")
            return self._invited(named)
        shown = [self._invited(i) for i in reversed(found)]
        return next((i for i in shown if not i.is_full), None)

    def _invited(self, i: Invitation) -> Invited:
        url = f"{access.base_url(self.request)}/join/{i.code}"
        parts = urlsplit(url)
        counted = (
            self.locale.say("invitation_uses", n=i.uses)
            if i.max_uses is None
            else self.locale.say("invitation_uses_of", n=i.uses, most=i.max_uses)
        )
        return Invited(
            i.id,
            i.code,
            codes.spaced(i.code),
            url,
            f"{parts.netloc}/join",
            qr.svg(url, self.locale.say("invitation_qr")),
            self.locale.time(i.expires_at, self.now),
            counted,
            i.max_uses is not None and i.uses >= i.max_uses,
        )

    def only_here(self) -> str | None:
        """Why the code that is shown leads nowhere from another computer; None: it does."""
        server = self.services.settings.server
        host = urlsplit(access.base_url(self.request)).hostname or ""
        if not (is_loopback(host) or host.endswith(".localhost")):
            return None
        return "only_here_listens" if server.public_url is None and is_loopback(server.host) else "only_here_opened"

    def _learner(self, glance: Glance) -> Learner:
        member, at_work = glance.member, glance.at_work
        seen = member.last_seen_at
        return Learner(
            member.name,
            member.display_name or member.name,
            self.locale.time(seen, self.now) if seen else self.locale.say("class_never_seen"),
            [self._pill(w) for w in glance.workspaces],
            at_work.title if at_work else None,
            self.locale.say("class_step", n=min(at_work.step, at_work.steps), steps=at_work.steps) if at_work else "",
            at_work.session_id if at_work else None,
            glance.waits,
            policy.allows(self.caller, Action.LOGIN_LINK_CREATE, policy.account(member.name)),
            member.active,
        )

    def _pill(self, w: Workspace) -> Pill:
        badge = presentation.badge(w)
        state = self.locale.say(f"state_{presentation.state(w)}")
        return Pill(w.id, w.name, badge.value, presentation.SIGNS[badge.value], state)
