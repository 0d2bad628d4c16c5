"""What a person is called by others, their language and their time zone. Called by `api` and by the account's page."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from codehub import ids, names
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import store
from codehub.auth.credentials import Credentials
from codehub.auth.model import Person
from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import InvalidRequestError, NotFoundError
from codehub.i18n.locales import zone
from codehub.i18n.texts import LANGUAGES
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal

LONGEST = 100  # characters of a display name


class Unchanged(Enum):
    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Kept = Literal[Unchanged.UNCHANGED]


@dataclass(frozen=True)
class Profile:
    """What to change. A language or time zone of None is the browser's; an empty display name is none."""

    display_name: str | Kept = UNCHANGED
    language: str | Kept | None = UNCHANGED
    time_zone: str | Kept | None = UNCHANGED


def checked(profile: Profile) -> dict[str, str | None]:
    """The columns that change, in the form in which they are kept."""
    found: dict[str, str | None] = {}
    if profile.display_name is not UNCHANGED:
        found["display_name"] = display_name(profile.display_name)
    if profile.language is not UNCHANGED:
        found["language"] = _language(profile.language)
    if profile.time_zone is not UNCHANGED:
        found["time_zone"] = _time_zone(profile.time_zone)
    return found


def display_name(text: str) -> str:
    """Any script; one line, all of which is seen."""
    name = names.composed(" ".join(filter(None, text.split(" "))))
    if len(name) > LONGEST:
        raise InvalidRequestError(f"at most {LONGEST} characters", field="display_name")
    if complaint := names.complaint(name):
        raise InvalidRequestError(complaint, field="display_name")
    return name


def _language(code: str | None) -> str | None:
    if code is not None and code not in LANGUAGES:
        raise InvalidRequestError(f"one of {', '.join(LANGUAGES)}, or null for the browser's", field="language")
    return code


def _time_zone(name: str | None) -> str | None:
    if name is not None and zone(name) is None:
        raise InvalidRequestError("a name like Asia/Seoul, or null for the browser's", field="time_zone")
    return name


class Profiles:
    def __init__(self, database: Database, clock: Clock, credentials: Credentials) -> None:
        self._database = database
        self._clock = clock
        self._credentials = credentials

    async def change(self, caller: Principal, name: str, profile: Profile) -> Person:
        """What is changed is audited by the fields' names: a display name is not kept beyond its person's account."""
        policy.require(caller, Action.USER_PROFILE, policy.account(name))
        columns, now = checked(profile), self._clock.now()
        async with self._database.transaction() as c:
            person = await _locked(c, name)
            if not policy.looks_after(caller, person.name, person.role):
                raise NotFoundError(policy.NO_SUCH_USER)
            news = {column: value for column, value in columns.items() if getattr(person, column) != value}
            if not news:
                return person
            changed = await store.change_profile(c, person, news)
            await c.execute(sql.announce)
            await audit.record(c, now, caller.origin, Code.USER_PROFILE, name, fields=sorted(news))
        self._credentials.forget()
        return changed


async def _locked(c: Connection, name: str) -> Person:
    person = await store.lock_user(c, name) if ids.is_label(name) else None
    if person is None:
        raise NotFoundError(policy.NO_SUCH_USER)
    return person
