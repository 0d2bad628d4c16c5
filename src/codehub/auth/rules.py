"""The rules about people and credentials. Pure: no I/O, `now` is an argument."""

from datetime import datetime, timedelta
from enum import Enum, auto

from codehub.auth.model import AccessToken, BrowserSession, Person, WaysIn
from codehub.errors import DeactivatedError, ForbiddenError, LastAdminError, LastWayInError
from codehub.policy import rules as policy_rules
from codehub.policy.model import Principal, Role, Scope

# Requests that were already under way with the old cookie when the new one was first used.
OLD_COOKIE_GRACE = timedelta(seconds=60)
# Writing down every use would make every read a write.
SEEN_EVERY = timedelta(seconds=60)


class SessionVerdict(Enum):
    KEEP = auto()
    TOUCH = auto()  # good; note that it was seen
    CONFIRM = auto()  # good; the browser has the newest cookie now
    ROTATE = auto()  # good; give it a new cookie
    REISSUE = auto()  # good, but it never received the newest cookie: give that one again
    ENDED = auto()
    STOLEN = auto()  # an old cookie came back after its successor was in use: end the session


def judge_session(session: BrowserSession, generation: int, now: datetime, rotate_after: timedelta) -> SessionVerdict:
    """What a cookie of this generation means for its session."""
    if session.revoked_at or session.expires_at <= now or generation > session.generation:
        return SessionVerdict.ENDED
    if generation == session.generation:
        return _judge_newest(session, now, rotate_after)
    if session.confirmed < session.generation and generation == session.generation - 1:
        return SessionVerdict.REISSUE
    if generation == session.generation - 1 and now - session.confirmed_at <= OLD_COOKIE_GRACE:
        return SessionVerdict.KEEP
    return SessionVerdict.STOLEN


def _judge_newest(session: BrowserSession, now: datetime, rotate_after: timedelta) -> SessionVerdict:
    if session.confirmed < session.generation:
        return SessionVerdict.CONFIRM
    if now - session.rotated_at >= rotate_after:
        return SessionVerdict.ROTATE
    if now - session.seen_at >= SEEN_EVERY:
        return SessionVerdict.TOUCH
    return SessionVerdict.KEEP


def token_is_good(token: AccessToken, person: Person, now: datetime) -> bool:
    return token.revoked_at is None and token.expires_at > now and person.active


def token_use_is_news(token: AccessToken, now: datetime) -> bool:
    return token.last_used_at is None or now - token.last_used_at >= SEEN_EVERY


def require_active(person: Person) -> None:
    """A deactivated person gets no new way in."""
    if not person.active:
        raise DeactivatedError(f"{person.name} is deactivated: activate them first")


def grantable(caller: Principal, wanted: frozenset[Scope] | None, owner: Role) -> frozenset[Scope]:
    """A token's scopes: what was asked for, never more than its maker holds or its owner may."""
    most = caller.scopes & policy_rules.grantable(owner)
    if wanted is None:
        return most
    if excess := wanted - most:
        raise ForbiddenError(f"a token for this person cannot get the scope `{min(excess)}`")
    return wanted


def require_whole_login(caller: Principal, person: Person) -> None:
    """A token that may do less than its person gives them no way in, which may do all."""
    if missing := policy_rules.grantable(person.role) - caller.scopes:
        raise ForbiddenError(
            f"this token lacks the scope `{min(missing)}`, and a way in has all: log in with a browser"
        )


class Ends(Enum):
    """Which logins of a person end with their role."""

    NONE = auto()
    LINKS = auto()  # unused ones
    SESSIONS = auto()  # and links
    ALL = auto()  # also what a teacher has in hand who looked after the account: links, tokens, a password


def ended_by(before: Role, now: Role) -> Ends:
    """Who becomes an admin logs in again: where workspaces have no origin of their own, the scripts of one that is open
    act by the browser's login, and must not become an admin's. So does who is one no more: passes into other people's
    workspaces stand on the session, and end with it.

    Teachers give learners links and passwords, and know them: these must not open a teacher's or an admin's account. An
    unused link ends with the role that it was made for.
    """
    if before is now:
        return Ends.NONE
    if policy_rules.may_attend(before) and not policy_rules.may_attend(now):
        return Ends.ALL
    return Ends.SESSIONS if policy_rules.administers(before) != policy_rules.administers(now) else Ends.LINKS


def check_admin_remains(person: Person, role: Role, *, active: bool, other_admins: int) -> None:
    """There must always be an active admin."""
    administers = policy_rules.administers
    loses = administers(person.role) and person.active and not (administers(role) and active)
    if loses and other_admins == 0:
        raise LastAdminError(f"{person.name} is the only active admin: make another person admin first")


def no_name(person: Person) -> str:
    """What a removed person is called: it says that they were one, and which of them."""
    return f"removed-{person.id}"


def check_way_remains(ways: WaysIn) -> None:
    """Asked before one of them is removed: a logout would lock its person out."""
    if ways.count <= 1:
        raise LastWayInError("this is the only way in that works now: add a password, a passkey or another login first")
