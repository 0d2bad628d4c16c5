"""Settings of what is made ready before it is needed."""

from dataclasses import dataclass

from codehub.settings.fields import between, setting


@dataclass(frozen=True)
class ScheduleConfig:
    spread_seconds: int = setting(
        "CODEHUB_SCHEDULE_SPREAD_SECONDS",
        600,
        "Seconds before a lesson over which the workspaces of its class are started, evenly: thirty at the same moment "
        "would each take thirty times as long.",
        check=between(0, 7200),
    )
    warm_seconds: int = setting(
        "CODEHUB_WARM_SECONDS",
        600,
        "Seconds for which a template is kept ready after one of its people was here, or a workspace of it was "
        "started: the next start comes soon, or not at all.",
        check=between(1, 86400),
    )
