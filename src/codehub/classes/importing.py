"""A list becomes people of a class: first said line by line, then done exactly so, in one transaction.

Called by `people_api` and pages. The school's id says who somebody is, else the name; a member without an id is known
by what they are called in this class, and gets the id. So the same list once more changes nothing.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from codehub.auth import enrolment
from codehub.auth.model import Person
from codehub.classes import romanize, roster, store
from codehub.classes.errors import ImportChangedError
from codehub.classes.model import Came, Member, MemberRole, SchoolClass
from codehub.classes.roster import Line, Roster
from codehub.classes.rules import check_open
from codehub.classes.service import Classes
from codehub.classes.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import LimitsConfig

EVERYBODY = 100_000


class Outcome(StrEnum):
    NEW = "new"  # an account is made
    ADDED = "added"  # an account that is there comes into the class
    THERE = "there"  # in the class already
    ERROR = "error"  # left out


@dataclass(frozen=True)
class Planned:
    line: Line
    outcome: Outcome
    name: str | None
    reason: str | None = None  # of an error, a code
    derived: bool = False  # the name was made of the display name


@dataclass(frozen=True)
class Preview:
    roster: Roster
    planned: Sequence[Planned]
    digest: str

    @property
    def counts(self) -> dict[Outcome, int]:
        counted = Counter(p.outcome for p in self.planned)
        return {outcome: counted[outcome] for outcome in Outcome}


@dataclass
class _Known:
    """What the class and the platform know of the people of a list."""

    by_school_id: dict[str, Person]
    by_name: dict[str, Person]
    members: dict[str, Member]  # by person's id
    unnamed: defaultdict[str, list[Member]]  # by what they are called, in order; each is found once


class Importing:
    def __init__(self, database: Database, clock: Clock, limits: LimitsConfig, classes: Classes) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
        self._classes = classes

    async def preview(self, caller: Principal, class_id: str, raw: bytes) -> Preview:
        async with self._database.transaction() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_MANAGE)
            return await self._planned(c, caller, class_id, roster.read(raw))

    async def perform(self, caller: Principal, class_id: str, raw: bytes, digest: str | None) -> Preview:
        """`digest`: of the preview that was agreed to; when something changed since then, nothing is done."""
        async with self._database.transaction() as c:
            found = await self._classes.authorized(c, caller, class_id, Action.CLASS_MANAGE, lock=True)
            check_open(found)
            plan = await self._planned(c, caller, class_id, roster.read(raw))
            if digest is not None and digest != plan.digest:
                raise ImportChangedError("something changed since the preview: look at it again", digest=plan.digest)
            await self._do(c, caller, found, plan)
        self._classes.changed()
        return plan

    async def make_person(self, caller: Principal, class_id: str, display_name: str, name: str | None) -> str:
        """One person for the class. Returns the name: as it was said, or made of the display name."""
        async with self._database.transaction() as c:
            found = await self._classes.authorized(c, caller, class_id, Action.CLASS_MANAGE, lock=True)
            check_open(found)
            if name is None:
                name = await enrolment.free_name(c, romanize.user_name(display_name) or "learner-01")
            await self._check_number(c, caller, 1)
            person = await enrolment.make_learner(c, self._clock.now(), caller, name, display_name)
            await self._classes.admit(c, caller, found, person, MemberRole.LEARNER, Came.MADE)
        self._classes.changed()
        return name

    async def _do(self, c: Connection, caller: Principal, found: SchoolClass, plan: Preview) -> None:
        """Those who are there first: they are locked before new names are given, as everywhere."""
        now, learner = self._clock.now(), MemberRole.LEARNER
        for p in sorted((p for p in plan.planned if p.outcome is Outcome.ADDED), key=lambda p: p.name or ""):
            person = await enrolment.lock_person(c, p.name or "")
            if person:
                await self._classes.admit(c, caller, found, person, learner, Came.ADDED, p.line.school_id)
        for p in plan.planned:
            if p.outcome is Outcome.THERE and p.line.school_id:
                await c.execute(sql.note_school_id, found.id, p.name, p.line.school_id)
            if p.outcome is Outcome.NEW and p.name:
                person = await enrolment.make_learner(c, now, caller, p.name, p.line.display_name)
                await self._classes.admit(c, caller, found, person, learner, Came.MADE, p.line.school_id)

    async def _check_number(self, c: Connection, caller: Principal, more: int) -> None:
        await enrolment.check_number(c, caller, more, self._limits.max_accounts_per_user)

    # --- what will happen

    async def _planned(self, c: Connection, caller: Principal, class_id: str, read: Roster) -> Preview:
        known = await self._known(c, caller, class_id, read)
        planned = [_judge(line, known) for line in read.lines]
        planned = await self._named(c, planned)
        await self._check_number(c, caller, sum(p.outcome is Outcome.NEW for p in planned))
        said = "\n".join(f"{p.line.number} {p.outcome} {p.name} {p.line} {p.reason}" for p in planned)
        return Preview(read, planned, hashlib.sha256(f"{class_id}\n{said}".encode()).hexdigest()[:32])

    async def _known(self, c: Connection, caller: Principal, class_id: str, read: Roster) -> _Known:
        members, lines = await store.members(c, class_id, limit=EVERYBODY), read.lines
        school_ids = [line.school_id for line in lines if line.school_id]
        rows = await c.fetch(sql.of_school_ids, class_id, None if read.of_class else caller.id, school_ids)
        named = await enrolment.find_people(c, [line.name for line in lines if line.name])
        by_school_id = await enrolment.find_by_id(c, {r["school_id"]: r["user_id"] for r in rows})
        unnamed: defaultdict[str, list[Member]] = defaultdict(list)
        for member in members:
            if not member.school_id and not member.teaches:
                unnamed[member.display_name].append(member)
        return _Known(by_school_id, named, {m.user_id: m for m in members}, unnamed)

    async def _named(self, c: Connection, planned: Sequence[Planned]) -> list[Planned]:
        """Names for those who have none: free ones, each once."""
        taken = {p.name for p in planned if p.name}
        found, number = [], 1
        for p in planned:
            if p.outcome is not Outcome.NEW or p.name is not None:
                found.append(p)
                continue
            wanted = romanize.user_name(p.line.display_name)
            if wanted is None:
                wanted, number = f"learner-{number:02}", number + 1
            name = await enrolment.free_name(c, wanted, taken)
            taken.add(name)
            found.append(replace(p, name=name, derived=True))
        return found


def _judge(line: Line, known: _Known) -> Planned:
    """Pure: who this line is about, and what that means."""
    if line.problem:
        return Planned(line, Outcome.ERROR, line.name, line.problem)
    person = known.by_school_id.get(line.school_id or "") or known.by_name.get(line.name or "")
    if person is None and not line.name and known.unnamed[line.display_name]:
        return Planned(line, Outcome.THERE, known.unnamed[line.display_name].pop(0).name)
    if person is None:
        return Planned(line, Outcome.NEW, line.name)
    if member := known.members.get(person.id):
        if member in known.unnamed[member.display_name]:
            known.unnamed[member.display_name].remove(member)
        return Planned(line, Outcome.THERE, person.name)
    if not policy.may_attend(person.role):
        return Planned(line, Outcome.ERROR, person.name, "NOT_A_LEARNER")
    if not person.active:
        return Planned(line, Outcome.ERROR, person.name, "DEACTIVATED")
    return Planned(line, Outcome.ADDED, person.name)
