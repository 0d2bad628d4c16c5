"""Are the settings right?"""

from collections.abc import Mapping

from codehub import settings as config
from codehub.doctor.model import Finding, fail, ok, warn


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
