"""Are the settings right?"""

from collections.abc import Mapping

from codehub import settings as config
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.invocation import command

LIST = f"`{command('settings')}`"


def check(complaints: list[str], environ: Mapping[str, str]) -> Finding:
    if complaints:
        advice = f"Correct it; {LIST} lists them all. The other checks used the default in its place."
        return fail("settings", "; ".join(complaints), advice)
    if unknown := config.unknown_names(environ):
        names = ", ".join(name + config.suggestion(name) for name in unknown)
        return warn("settings", f"not known: {names}", f"Correct the names, or remove them; {LIST} lists all.")
    return ok("settings", "every value is valid")
