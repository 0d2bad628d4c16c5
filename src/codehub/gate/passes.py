"""What opens one workspace for one browser: signed, so that the proxy needs no look-up.

The API gives passes out; the proxy reads one on every request. A pass stands on the session it came from and ends
with it. Tickets carry a login from the platform's origin to a workspace's, once, within seconds.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from codehub import ids
from codehub.auth.signing import Signer
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import Settings

TICKET_SECONDS = 60
# In place of a browser's state: a ticket that our own page puts into the first address of the frame that it shows.
IN_FRAME = "frame"
# A session that was not seen for a while may be a little older than a pass made from it: passes end first.
MARGIN_SECONDS = 300


class Pass(NamedTuple):
    workspace_id: str
    person: str
    role: Role  # as it was at the login, which ends when the person becomes an admin, or is one no more
    session_id: str
    expires: int  # seconds since 1970
    told: bool = False  # the owner learned of this visit; who enters only on that ground needs it
    frame: str = ""  # the origin of the page around it; empty: it has a tab of its own

    @property
    def principal(self) -> Principal:
        """The person, for this workspace and nothing else."""
        return Principal(
            self.person,
            self.role,
            ALL_SCOPES,
            session_id=self.session_id,
            workspace_id=self.workspace_id,
            visit_told=self.told,
        )


class Ticket(NamedTuple):
    given: Pass  # what it is traded for
    expires: int
    state: str  # the hash of what the browser holds on the workspace's origin: no other browser's ticket fits
    id: str


def cookie_name(settings: Settings, *, isolated: bool) -> str:
    """On an origin of its own it covers the whole of it; else it is tied to the workspace's path."""
    return "__Host-codehub-pass" if settings.secure and isolated else "codehub-pass"


def worker_cookie_name(settings: Settings) -> str:
    """For the script of a service worker, which browsers ask for without partitioned cookies; and for nothing else."""
    return "__Host-codehub-worker-pass" if settings.secure else "codehub-worker-pass"


def state_cookie_name(settings: Settings) -> str:
    return "__Host-codehub-state" if settings.secure else "codehub-state"


TOLD_COOKIE = "codehub-told"


def state_of(nonce: str) -> str:
    return hashlib.sha256(nonce.encode()).hexdigest()


class Passes:
    def __init__(self, secret_key: str) -> None:
        self._passes = Signer(secret_key, "workspace-pass")
        self._worker_passes = Signer(secret_key, "worker-pass")
        self._tickets = Signer(secret_key, "workspace-ticket")
        self._told = Signer(secret_key, "shared-origin")

    def write(self, given: Pass) -> str:
        return self._passes.sign(_written(given))

    def read(self, text: str) -> Pass | None:
        """None: not one of ours. Whether it is still good is for the rules to say."""
        return _read_pass((self._passes.verify(text) or "").split("."))

    def write_for_worker(self, given: Pass) -> str:
        """The same for the script of a service worker in a frame; it opens nothing else."""
        return self._worker_passes.sign(_written(given))

    def read_for_worker(self, text: str) -> Pass | None:
        return _read_pass((self._worker_passes.verify(text) or "").split("."))

    def told(self, session_id: str) -> str:
        """For a browser whose person was told what it means that workspaces share the platform's origin."""
        return self._told.sign(session_id)

    def was_told(self, text: str, session_id: str) -> bool:
        return self._told.verify(text) == session_id

    def ticket(self, given: Pass, state: str, now: float) -> str:
        return self._tickets.sign(f"{_written(given)}.{int(now) + TICKET_SECONDS}.{state}.{ids.new()}")

    def read_ticket(self, text: str, now: float) -> Ticket | None:
        *parts, expires, state, id_ = (self._tickets.verify(text) or "..").split(".")
        given = _read_pass(parts)
        return Ticket(given, int(expires), state, id_) if given and int(expires) > now else None


def _written(given: Pass) -> str:
    return ".".join(map(str, (*given[:-2], int(given.told), given.frame.encode().hex())))


def _read_pass(parts: Sequence[str]) -> Pass | None:
    """None: it has another shape, as those of an earlier version had."""
    if len(parts) != len(Pass._fields):
        return None
    workspace_id, person, role, session_id, expires, told, frame = parts
    return Pass(workspace_id, person, Role(role), session_id, int(expires), told == "1", bytes.fromhex(frame).decode())
