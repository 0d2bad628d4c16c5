"""What can be asked of many workspaces at once, and for which of them it would change nothing. Pure; used by `bulk`."""

from enum import StrEnum

from codehub.workspaces import rules
from codehub.workspaces.model import Desired, Phase, Workspace


class Verb(StrEnum):
    START = "start"
    SLEEP = "sleep"
    ARCHIVE = "archive"
    RECOVER = "recover"
    DELETE = "delete"
    UNDELETE = "undelete"


class Outcome(StrEnum):
    DONE = "done"
    SAME = "same"  # it was so already
    REFUSED = "refused"


def is_so_already(w: Workspace, verb: Verb) -> bool:
    """Nothing would change. To put to sleep what is stored away would unpack it, which nobody means by it."""
    match verb:
        case Verb.SLEEP:
            return w.phase in {Phase.STANDBY, Phase.ARCHIVED, Phase.PENDING} and w.desired_state is not Desired.RUNNING
        case Verb.START:
            return rules.counts_as_running(w)
        case Verb.ARCHIVE:
            return w.phase in {Phase.ARCHIVED, Phase.PENDING} and w.desired_state is not Desired.RUNNING
        case Verb.DELETE:
            return w.deleted_at is not None
        case Verb.UNDELETE:
            return w.deleted_at is None
        case Verb.RECOVER:
            return w.phase is not Phase.ERROR
