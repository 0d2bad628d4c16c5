"""What would stop `codehub serve` later, one thing after the other, found before anything is started. Called by `cli`.

Only what can be seen without changing anything, and in a moment.
"""

from collections.abc import Callable

from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.runtimes import requirements
from codehub.settings import Settings
from codehub.supervisor import listeners
from codehub.system.privileges import service_account
from codehub.templates.loader import Templates


def problems(settings: Settings) -> list[str]:
    """A line for each."""
    checks: tuple[Callable[[], object], ...] = (
        lambda: DataDir(settings.storage.data_dir).check(),
        lambda: service_account(settings.server.user),
        lambda: requirements.require(settings.runtime),
        lambda: Templates.load(settings.runtime.templates_dir, settings.storage.data_dir, settings.runtime.runtime),
    )
    return [*listeners.problems(settings), *(problem for check in checks for problem in _problems(check))]


def _problems(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except StartError as e:
        return e.detail.splitlines()
    return []
