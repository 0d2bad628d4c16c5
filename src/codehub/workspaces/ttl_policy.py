"""When a workspace sleeps by itself, and when it is stored away: by its own time, its template's, or the platform's.

Pure. Used by the API to say it beforehand, by the TTL runner to do it, and by the controller to look once more.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.settings import ActivityConfig, TtlConfig
from codehub.templates.loader import Templates
from codehub.templates.model import ActivityMode, ActivityProfile
from codehub.workspaces.model import Desired, Operation, Phase, Workspace

# In the connections mode a timer runs from the last connection's end, and nothing comes on top of it.
IDLE_TIMER_SECONDS = 300


@dataclass(frozen=True)
class TtlPolicy:
    """What a template's workspaces live by. 0 seconds = never."""

    mode: ActivityMode
    profile: ActivityProfile
    standby_seconds: int
    archive_seconds: int
    busy_cpus: float = 0.0  # processes that use so much are at work; 0: not asked


class TtlPolicies:
    """By template, and what follows from them for a workspace."""

    def __init__(self, ttl: TtlConfig, activity: ActivityConfig, templates: Templates) -> None:
        self._ttl = ttl
        self._mode = ActivityMode(activity.mode)
        self._templates = templates

    def of_template(self, name: str) -> TtlPolicy:
        """A template that is gone leaves workspaces behind: they live by the platform's times."""
        template = self._templates.find(name)
        mode = (template and template.activity) or self._mode
        default = IDLE_TIMER_SECONDS if mode is ActivityMode.CONNECTIONS else self._ttl.standby_seconds
        own_standby = template.standby_ttl_seconds if template else None
        own_archive = template.archive_ttl_seconds if template else None
        return TtlPolicy(
            mode,
            template.activity_profile if template else ActivityProfile.PLAIN,
            default if own_standby is None else own_standby,
            self._ttl.archive_seconds if own_archive is None else own_archive,
            template.busy_cpus if template else 0.0,
        )

    @property
    def platform(self) -> TtlConfig:
        """The operator's own times."""
        return self._ttl

    def lives_by_platform(self, template_name: str, own_standby: int | None) -> bool:
        """Does the platform's time put it to sleep? Not one of its own or its template's, nor its connections' end."""
        template = self._templates.find(template_name)
        theirs = own_standby if own_standby is not None else template.standby_ttl_seconds if template else None
        return theirs is None and self.of_template(template_name).mode is ActivityMode.TRAFFIC

    def own_archive(self, template_name: str, own: int | None) -> int | None:
        """Of the workspace or its template; None: it lives by the platform's."""
        template = self._templates.find(template_name)
        return own if own is not None else template.archive_ttl_seconds if template else None

    def standby_seconds(self, w: Workspace) -> int:
        own = w.standby_ttl_seconds
        return self.of_template(w.template).standby_seconds if own is None else own

    def sleeps_at(self, w: Workspace) -> datetime | None:
        """If nothing happens until then. None: nothing would put it to sleep."""
        seconds = self.standby_seconds(w)
        awake = w.phase is Phase.RUNNING and w.desired_state is Desired.RUNNING and w.operation is Operation.NONE
        if not awake or w.deleted_at is not None or seconds == 0:
            return None
        at = w.idle_since + timedelta(seconds=seconds)
        return max(at, w.keep_awake_until) if w.keep_awake_until else at

    def came_back(self, w: Workspace, newest: datetime) -> bool:
        """Was a person at work too recently for a timer's request that it should sleep?"""
        return newest + timedelta(seconds=self.standby_seconds(w)) > w.desired_at
