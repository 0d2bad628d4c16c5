"""Can workspaces run here, apart from each other, and from which templates? Asks the runtime itself."""

import pathlib
import tempfile

from codehub.clock import SystemClock
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.errors import SettingsError
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import Settings
from codehub.supervisor.privileges import service_account
from codehub.templates.loader import Templates


async def isolation(settings: Settings) -> Finding:
    account = service_account(settings.server.user)
    with tempfile.TemporaryDirectory(prefix="codehub-doctor-") as nothing:  # to look, and leave no trace
        runtime = ProcessRuntime(pathlib.Path(nothing), settings.runtime, account, SystemClock())
        found = await runtime.isolation()
    if found.kind is None:
        who = "only admins" if settings.runtime.isolation == "auto" else "nobody"
        advice = (
            f"Install bubblewrap, or allow user namespaces; until then {who} can start workspaces. "
            "CODEHUB_ISOLATION=none lets everybody, and everybody can then read everything."
        )
        return fail("isolation", found.reason, advice)
    if settings.runtime.isolation == "none":
        return warn("isolation", "switched off: workspaces can read each other", "Unset CODEHUB_ISOLATION.")
    return ok("isolation", found.reason)


def templates(settings: Settings) -> Finding:
    try:
        loaded = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir)
    except SettingsError as e:
        return fail("templates", e.detail, "Correct the file.")
    missing = [f"{t.name} ({reason})" for t in loaded.all() if (reason := loaded.unavailable(t.name))]
    usable = [t.name for t in loaded.all() if loaded.unavailable(t.name) is None]
    if not usable:
        return fail("templates", f"none can be started: {'; '.join(missing)}", "Install one of them.")
    left_out = f"; not available: {'; '.join(missing)}" if missing else ""
    return ok("templates", ", ".join(usable) + left_out)
