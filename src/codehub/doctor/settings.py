"""Are the settings right? And which can the other checks work with if not?"""

import pathlib
from collections.abc import Mapping

from codehub import settings as config
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.errors import SettingsError
from codehub.settings import Settings

NO_FILE = pathlib.Path("/dev/null")


def load_what_is_right(environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The settings with every wrong one left at its default, and a line about each wrong one."""
    env = {name: value for name, value in environ.items() if value != ""}
    file: pathlib.Path | None = None
    complaints: list[str] = []
    while True:
        try:
            return config.load(env, file), complaints
        except SettingsError as e:
            complaints.append(e.detail)
            if env.pop(e.detail.partition("=")[0], None) is None:  # so it is in the file, or the file itself
                if file == NO_FILE:
                    raise
                file = NO_FILE


def check(complaints: list[str], environ: Mapping[str, str]) -> Finding:
    if complaints:
        advice = "Correct it; `codehub settings` lists them all. The other checks used the default in its place."
        return fail("settings", "; ".join(complaints), advice)
    if unknown := config.unknown_names(environ):
        names = ", ".join(name + config.suggestion(name) for name in unknown)
        return warn(
            "settings", f"not known: {names}", "Correct the names, or remove them; `codehub settings` lists all."
        )
    return ok("settings", "every value is valid")
