"""What an operator may set about runtimes and templates. Read by `settings` as one of its groups."""

import pathlib
from dataclasses import dataclass

from codehub.settings import at_least, between, one_of, setting


@dataclass(frozen=True)
class RuntimeConfig:
    runtime: str = setting(
        "CODEHUB_RUNTIME", "process", "What runs workspaces: process (on this machine).", check=one_of("process")
    )
    templates_dir: pathlib.Path | None = setting(
        "CODEHUB_TEMPLATES_DIR", None, "Folder with more templates (*.toml); one named like a built-in replaces it."
    )
    isolation: str = setting(
        "CODEHUB_ISOLATION",
        "auto",
        "How workspaces are kept apart: auto takes bubblewrap, else namespaces, else refuses to start any; "
        "bubblewrap or namespaces insist on one; none runs them unprotected.",
        check=one_of("auto", "bubblewrap", "namespaces", "none"),
    )
    stop_grace_seconds: float = setting(
        "CODEHUB_STOP_GRACE_SECONDS",
        10.0,
        "Seconds that an IDE has to end by itself before it is ended.",
        check=at_least(0),
    )
    log_max_bytes: int = setting(
        "CODEHUB_LOG_MAX_BYTES",
        8 * 1024 * 1024,
        "Bytes of its log that are kept of each workspace, at most.",
        check=at_least(65536),
    )
    uid_base: int = setting(
        "CODEHUB_UID_BASE",
        200_000,
        "As root, each workspace runs as a user of its own, numbered from here upwards; no account may lie there.",
        check=between(1000, 2_000_000_000),
    )
    disk_usage_seconds: float = setting(
        "CODEHUB_DISK_USAGE_SECONDS", 30.0, "Seconds that measuring one home may take.", check=at_least(0.1)
    )
