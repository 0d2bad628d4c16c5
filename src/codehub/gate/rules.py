"""What a request to a workspace gets. Pure: the state of the workspace and of the request in, an outcome out."""

from enum import Enum

from codehub.workspaces.model import Desired, Operation, Phase

WAKING = {Operation.STARTING, Operation.RESTORING, Operation.PROVISIONING}


class Outcome(Enum):
    """For what is not a page; the value is the problem's code."""

    FORWARD = "RUNNING"
    HOLD = "WAKING"  # until it runs, then forwarded
    WAKE = "WAKE"  # the template lets anything wake it; then as HOLD
    ASLEEP = "ASLEEP"
    ARCHIVED = "ARCHIVED"
    PENDING = "PENDING"
    ERROR = "ERROR"
    UNKNOWN = "NOT_FOUND"


def outcome(phase: Phase, operation: Operation, desired: Desired, *, answering: bool, wakes: bool) -> Outcome:
    """`answering`: there is an address; `wakes`: a request like this one may wake it."""
    if phase is Phase.DELETED:
        return Outcome.UNKNOWN
    if phase is Phase.ERROR:
        return Outcome.ERROR
    if phase is Phase.RUNNING and answering and operation is not Operation.STOPPING:
        return Outcome.FORWARD
    if operation in WAKING or (phase is not Phase.RUNNING and desired is Desired.RUNNING):
        return Outcome.HOLD
    if phase is Phase.PENDING:
        return Outcome.PENDING
    if phase is Phase.ARCHIVED:
        return Outcome.ARCHIVED
    return Outcome.WAKE if wakes and operation is Operation.NONE else Outcome.ASLEEP


def is_navigation(method: bytes, mode: bytes, dest: bytes, accept: bytes, *, upgrade: bool) -> bool:
    """Does a person ask for a page? Browsers say so; where one says nothing, a GET that accepts HTML counts."""
    if upgrade or method not in (b"GET", b"HEAD"):
        return False
    if mode:
        return mode == b"navigate" and dest in (b"", b"document", b"iframe", b"frame")
    return b"text/html" in accept


def comes_from_elsewhere(origin: bytes, site: bytes, host: bytes, *, followed: bool, upgrade: bool) -> bool:
    """Is this another site's page that uses the visitor's pass? Links that are followed may lead here; nothing else."""
    if origin and origin.partition(b"://")[2].lower() != host.lower():
        return True
    if upgrade:
        return not origin
    return bool(site) and site not in (b"same-origin", b"none") and not followed
