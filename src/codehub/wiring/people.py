"""People, their ways in and their classes: built once for an API process."""

from dataclasses import dataclass

from codehub.assignments import giving
from codehub.assignments import leaving as asking
from codehub.auth.credentials import Credentials
from codehub.auth.first_steps import FirstSteps
from codehub.auth.hashing import Hashing
from codehub.auth.logins import Logins
from codehub.auth.model import WorkingWays
from codehub.auth.passwords import Passwords
from codehub.auth.profiles import Profiles
from codehub.auth.removal import Consequences, Removal
from codehub.auth.service import People
from codehub.auth.tries import Tries
from codehub.classes import leaving as school
from codehub.classes.code_tries import CodeTries
from codehub.classes.importing import Importing
from codehub.classes.invitations import Invitations
from codehub.classes.joining import Joining
from codehub.classes.service import Classes
from codehub.classes.sheets import Sheets
from codehub.clock import Clock
from codehub.db import Database
from codehub.db.redis import Client
from codehub.openid.service import OpenId
from codehub.passkeys import rules as passkey_rules
from codehub.passkeys.challenges import Challenges
from codehub.passkeys.first import FirstPasskeys
from codehub.passkeys.service import Passkeys
from codehub.schedules import leaving as schedules
from codehub.sessions import leaving as learning
from codehub.settings import Settings
from codehub.waiting_room import leaving as waiting
from codehub.wiring import openid
from codehub.workspaces import leaving

# What the other capabilities do when a person is deactivated, active again, or removed.
LEAVING = (leaving.put_away, waiting.put_away)
RETURNING = (waiting.let_back,)
REMOVING = (*LEAVING, leaving.throw_away)
FORGETTING = (leaving.forget, waiting.forget, learning.forget, schedules.forget, school.forget, asking.forget)


@dataclass(frozen=True)
class PeopleServices:
    """Each is a field of `web.services.Services`, by the same name."""

    credentials: Credentials
    logins: Logins
    passwords: Passwords
    people: People
    classes: Classes
    invitations: Invitations
    joining: Joining
    importing: Importing
    sheets: Sheets
    profiles: Profiles
    first_steps: FirstSteps
    openid: OpenId
    passkeys: Passkeys
    removal: Removal


def _working(settings: Settings) -> WorkingWays:
    issuers = frozenset(provider.issuer for provider in settings.openid.providers)
    return WorkingWays(issuers, passkey_rules.name_of(settings.server))


def build(settings: Settings, database: Database, client: Client, clock: Clock, key: str) -> PeopleServices:
    credentials = Credentials(database, clock, settings.auth, key)
    logins = Logins(clock, settings.auth, credentials, _working(settings))
    passwords = Passwords(database, clock, credentials, logins, Hashing(), Tries(client, clock, key))
    classes = Classes(database, clock, settings.limits, credentials.forget, giving.to_joiner)
    challenges = Challenges(client, clock, key, settings.auth.passkey_seconds)
    first = FirstPasskeys(settings.server, challenges)
    coming = classes, CodeTries(client, clock), passwords, first, logins, credentials
    people = People(database, clock, settings.auth, settings.limits, credentials, logins, LEAVING, RETURNING)
    return PeopleServices(
        credentials=credentials,
        logins=logins,
        passwords=passwords,
        people=people,
        removal=Removal(database, clock, credentials, Consequences(REMOVING, FORGETTING)),
        profiles=Profiles(database, clock, credentials),
        first_steps=FirstSteps(database, clock),
        classes=classes,
        openid=openid.build(settings.openid, database, client, clock, key, (credentials, logins, classes)),
        invitations=Invitations(database, clock, settings.limits, classes),
        joining=Joining(database, clock, *coming),
        passkeys=Passkeys(database, clock, settings.server, settings.limits, challenges, credentials, logins),
        importing=Importing(database, clock, settings.limits, classes),
        sheets=Sheets(classes, people),
    )
