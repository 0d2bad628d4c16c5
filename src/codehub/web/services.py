"""What pages and the application use. Built by `wiring.api`; capabilities' APIs get theirs by type (`http.provide`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from codehub.activity.service import Activity
from codehub.activity.what_if_service import WhatIf
from codehub.assignments.hands import Hands
from codehub.assignments.service import Assignments
from codehub.audit.service import AuditLog
from codehub.auth.credentials import Credentials
from codehub.auth.first_steps import FirstSteps
from codehub.auth.logins import Logins
from codehub.auth.passwords import Passwords
from codehub.auth.profiles import Profiles
from codehub.auth.removal import Removal
from codehub.auth.service import People
from codehub.auth.streams import OpenStreams
from codehub.backup.requests import Backups
from codehub.classes.importing import Importing
from codehub.classes.invitations import Invitations
from codehub.classes.joining import Joining
from codehub.classes.overview import Overview
from codehub.classes.service import Classes
from codehub.classes.sheets import Sheets
from codehub.clock import Clock
from codehub.coordinator.leader_doors import Doors
from codehub.courses.drafts import Drafts
from codehub.courses.service import Courses
from codehub.db import Database, Listener
from codehub.db.redis import Client
from codehub.events.hub import Hub
from codehub.gate.access import Access
from codehub.gate.origins import Origins
from codehub.gate.passes import Passes
from codehub.http import lasting
from codehub.http.access import Authenticator
from codehub.http.streams import Streams
from codehub.ides.service import Ides
from codehub.monitoring.service import Monitoring
from codehub.openid.service import OpenId
from codehub.passkeys.service import Passkeys
from codehub.rates import Rates
from codehub.retention.preview import Previews
from codehub.runtimes.base import Logs
from codehub.schedules.service import Schedules
from codehub.sessions.places import RunPlaces
from codehub.sessions.practice import Practice
from codehub.sessions.runs import Runs
from codehub.sessions.service import Sessions
from codehub.settings import Settings
from codehub.settings.overview import Source
from codehub.templates.loader import Templates
from codehub.waiting_room.events import Events
from codehub.waiting_room.service import WaitingRoom
from codehub.waiting_room.stream import WaitingStreams
from codehub.workspaces.bulk import BulkActions
from codehub.workspaces.finding import AllWorkspaces
from codehub.workspaces.repositories import Repositories
from codehub.workspaces.service import Workspaces
from codehub.workspaces.sharing import Sharing
from codehub.workspaces.ttl_policy import TtlPolicies


@dataclass(frozen=True)
class Services:
    settings: Settings
    setting_sources: Mapping[str, Source]
    clock: Clock
    database: Database
    redis: Client
    listener: Listener
    credentials: Credentials
    open_streams: OpenStreams
    logins: Logins
    passwords: Passwords
    people: People
    profiles: Profiles
    first_steps: FirstSteps
    removal: Removal
    classes: Classes
    openid: OpenId
    invitations: Invitations
    joining: Joining
    importing: Importing
    sheets: Sheets
    overview: Overview
    passkeys: Passkeys
    audit: AuditLog
    monitoring: Monitoring
    templates: Templates
    ides: Ides
    runtime: Logs
    doors: Doors
    workspaces: Workspaces
    repositories: Repositories
    all_workspaces: AllWorkspaces
    bulk: BulkActions
    previews: Previews
    backups: Backups
    hub: Hub
    origins: Origins
    passes: Passes
    access: Access
    sharing: Sharing
    ttl_policies: TtlPolicies
    activity: Activity
    what_if: WhatIf
    rates: Rates
    sessions: Sessions
    runs: Runs
    practice: Practice
    run_places: RunPlaces
    courses: Courses
    course_drafts: Drafts
    assignments: Assignments
    schedules: Schedules
    hands: Hands
    waiting_room: WaitingRoom
    waiting_events: Events
    waiting_streams: WaitingStreams

    def by_type(self) -> Mapping[type[Any], Any]:
        return {
            Settings: self.settings,
            Clock: self.clock,
            Database: self.database,
            Authenticator: self.credentials,
            lasting.OpenStreams: self.open_streams,
            Streams: Streams(self.settings.limits, self.open_streams),
            Logins: self.logins,
            Passwords: self.passwords,
            People: self.people,
            Profiles: self.profiles,
            Removal: self.removal,
            Classes: self.classes,
            OpenId: self.openid,
            Invitations: self.invitations,
            Joining: self.joining,
            Passkeys: self.passkeys,
            Importing: self.importing,
            Sheets: self.sheets,
            AuditLog: self.audit,
            Monitoring: self.monitoring,
            Templates: self.templates,
            Ides: self.ides,
            Logs: self.runtime,
            Doors: self.doors,
            Workspaces: self.workspaces,
            Repositories: self.repositories,
            Sharing: self.sharing,
            TtlPolicies: self.ttl_policies,
            Activity: self.activity,
            WhatIf: self.what_if,
            Rates: self.rates,
            Sessions: self.sessions,
            Runs: self.runs,
            Practice: self.practice,
            RunPlaces: self.run_places,
            Courses: self.courses,
            Assignments: self.assignments,
            Schedules: self.schedules,
            Hands: self.hands,
            WaitingRoom: self.waiting_room,
            Events: self.waiting_events,
            WaitingStreams: self.waiting_streams,
        }


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
