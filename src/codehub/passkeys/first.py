"""The passkey of a person who has no account yet: asked for before there is one, kept in the transaction that makes it.

Called by `classes.joining`. The account's id is made of the question, because a passkey is told whose it is when it is
made. Ids are unique: so an answer makes one account at most, however often and wherever it is sent.
"""

from dataclasses import dataclass
from datetime import datetime

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import provisioning
from codehub.auth.model import Person
from codehub.db import Connection
from codehub.passkeys import ceremony, rules, store
from codehub.passkeys.challenges import OVER, Challenges
from codehub.passkeys.errors import PasskeyChallengeError, PasskeyExistsError
from codehub.passkeys.model import NewCredential, Purpose
from codehub.passkeys.service import EXISTS, Question
from codehub.policy.model import Origin
from codehub.settings import ServerConfig


@dataclass(frozen=True)
class Asker:
    """A browser that a person is not logged in with: what it holds (a cookie's secret), and how it reached us."""

    held: str
    host: str


@dataclass(frozen=True)
class FirstPasskey:
    """Verified, and whose it will be."""

    user_id: str
    credential: NewCredential
    label: str
    belongs_to: str  # the platform's name


class FirstPasskeys:
    def __init__(self, server: ServerConfig, challenges: Challenges) -> None:
        self._server = server
        self._challenges = challenges

    def ask(self, asker: Asker, bound_to: str, name: str, display_name: str) -> Question:
        """`bound_to`: what the answer has to come with, besides this browser's cookie."""
        place = rules.require_place(rules.place_of(self._server, asker.host))
        challenge, seconds = self._challenges.new(Purpose.JOIN, _holder(asker, bound_to)), self._challenges.seconds
        who = (rules.account_id(challenge), name, display_name)
        return Question(ceremony.creation_options(place, *who, challenge, seconds, ()), seconds)

    def prepare(self, asker: Asker, bound_to: str, sent: object, agent: str) -> FirstPasskey:
        """`sent`: what the browser's `navigator.credentials.create` gave, as JSON."""
        place = rules.require_place(rules.place_of(self._server, asker.host))
        answer = ceremony.read_creation(sent)
        ceremony.check_origin(answer, place)
        self._challenges.check(answer.challenge, Purpose.JOIN, _holder(asker, bound_to))
        new = ceremony.verify_creation(answer, place)
        return FirstPasskey(rules.account_id(answer.challenge), new, rules.default_label(agent, ()), place.name)

    @staticmethod
    async def check_unused(c: Connection, new: FirstPasskey) -> None:
        """Before its account is made, with a lock that lets one answer at a time come this far."""
        if await provisioning.find(c, new.user_id):
            raise PasskeyChallengeError(OVER)

    @staticmethod
    async def keep(c: Connection, person: Person, new: FirstPasskey, now: datetime, by: Origin) -> None:
        added = await store.add(c, ids.new(), person.id, new.credential, new.label, new.belongs_to, now)
        if added is None:
            raise PasskeyExistsError(EXISTS)
        await audit.record(c, now, by, Code.PASSKEY_ADD, person.name, passkey_id=added.id, label=added.label)


def _holder(asker: Asker, bound_to: str) -> str:
    return f"{asker.held} {bound_to}"
