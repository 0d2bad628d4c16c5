"""The first steps of every process: settings are read, and logs take their form. Used by `cli` and `command`."""

import gc
import os
import resource
from collections.abc import Callable

from codehub import logs
from codehub import settings as config
from codehub.errors import SettingsError
from codehub.settings import Settings


def load_settings(role: str, check: Callable[[Settings], list[str]] | None = None) -> Settings:
    """With `check`, what is wrong with values that are right by themselves: all of it is said at once."""
    gc.freeze()
    gc.enable()
    settings, problems = config.load_checked()
    problems += check(settings) if check else []
    if problems:
        raise SettingsError("\n".join(problems))
    logs.configure(settings.log, role)
    for name in config.unknown_names(os.environ):
        logs.get().warning("Unknown setting in the environment" + config.suggestion(name), name=name)
    return settings


def allow_many_connections() -> None:
    """As many open files as we may have: every connection is one, and most systems begin with 1,024.

    For the roles that clients connect to. What the coordinator starts keeps the limit it would have without us.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
