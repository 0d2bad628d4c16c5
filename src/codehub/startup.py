"""The first steps of every process: settings are read, and logs take their form. Used by `cli` and `command`."""

import os

from codehub import logs
from codehub import settings as config
from codehub.settings import Settings


def load_settings(role: str) -> Settings:
    settings = config.load()
    logs.configure(settings.log, role)
    for name in config.unknown_names(os.environ):
        logs.get().warning("Unknown setting in the environment" + config.suggestion(name), name=name)
    return settings
