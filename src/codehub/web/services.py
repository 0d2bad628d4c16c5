"""What pages and the application use. Built by `wiring.api`; capabilities' APIs get theirs by type (`http.provide`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis.asyncio
from starlette.requests import Request

from codehub.activity.service import Activity
from codehub.audit.service import AuditLog
from codehub.auth.credentials import Credentials
from codehub.auth.service import People
from codehub.auth.streams import OpenStreams
from codehub.clock import Clock
from codehub.courses.service import Courses
from codehub.db import Database, Listener
from codehub.events.hub import Hub
from codehub.gate.access import Access
from codehub.gate.origins import Origins
from codehub.gate.passes import Passes
from codehub.http import lasting
from codehub.http.access import Authenticator
from codehub.http.streams import Streams
from codehub.rates import Rates
from codehub.runtimes.base import Runtime
from codehub.sessions.practice import Practice
from codehub.sessions.runs import Runs
from codehub.sessions.service import Sessions
from codehub.settings import Settings
from codehub.templates.loader import Templates
from codehub.workspaces.service import Workspaces
from codehub.workspaces.sharing import Sharing
from codehub.workspaces.ttl_policy import TtlPolicies


@dataclass(frozen=True)
class Services:
    settings: Settings
    clock: Clock
    database: Database
    redis: redis.asyncio.Redis
    listener: Listener
    credentials: Credentials
    open_streams: OpenStreams
    people: People
    audit: AuditLog
    templates: Templates
    runtime: Runtime
    workspaces: Workspaces
    hub: Hub
    origins: Origins
    passes: Passes
    access: Access
    sharing: Sharing
    ttl_policies: TtlPolicies
    activity: Activity
    rates: Rates
    sessions: Sessions
    runs: Runs
    practice: Practice
    courses: Courses

    def by_type(self) -> Mapping[type[Any], Any]:
        return {
            Settings: self.settings,
            Clock: self.clock,
            Database: self.database,
            Authenticator: self.credentials,
            lasting.OpenStreams: self.open_streams,
            Streams: Streams(self.settings.limits, self.open_streams),
            People: self.people,
            AuditLog: self.audit,
            Templates: self.templates,
            Runtime: self.runtime,
            Workspaces: self.workspaces,
            Sharing: self.sharing,
            TtlPolicies: self.ttl_policies,
            Activity: self.activity,
            Rates: self.rates,
            Sessions: self.sessions,
            Runs: self.runs,
            Practice: self.practice,
            Courses: self.courses,
        }


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
