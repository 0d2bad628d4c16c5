"""Settings of warm starts: a part of `RuntimeConfig`."""

from dataclasses import dataclass

from codehub.settings.fields import at_least, one_of, setting


@dataclass(frozen=True)
class WarmStartConfig:
    warm_starts: str = setting(
        "CODEHUB_WARM_STARTS",
        "on",
        "Start the programs of templates that say `warm` as copies of a process with their modules loaded: on, off.",
        check=one_of("on", "off"),
    )
    warm_idle_seconds: float = setting(
        "CODEHUB_WARM_IDLE_SECONDS",
        1800.0,
        "Seconds without a start after which such a process ends; it takes some 100 MB, shared with its copies.",
        check=at_least(1.0),
    )
    warm_memory_mb: int = setting(
        "CODEHUB_WARM_MEMORY_MB",
        1024,
        "Megabytes that one such process may take; beyond that it ends, and starts are cold.",
        check=at_least(64),
    )
