"""Where everything of a workspace lies on this machine. Pure names; `volumes`, `process` and `logs` make and read them.

<data>/workspaces/counter         the next user number (as root)
<data>/workspaces/running/        one record per running workspace: a look at all that run is one small listing
<data>/workspaces/homes/<id>/
    lock        held by the shepherd while it runs, and for moments by verbs that move the volume
    volume/     home/ and meta.json: moved as one
    parked/     the same, in the trash
    staging-<generation>/   what a restore unpacks; becomes placing-<generation>/home, which becomes volume/
    gone-*/     on its way out
    etc/        passwd and the like, as the workspace sees them
    log/        current, previous
    exit.json   how the last one ended
    usage.json  how much the home took when it was last measured
<run>/w/<key>/sock                the IDE's socket
"""

import hashlib
import os
import pathlib
from dataclasses import dataclass

from codehub import ids
from codehub.embedded.datadir import DataDir
from codehub.errors import NotFoundError

# A socket's path has at most 107 bytes: 80 for the run directory, "/w/", this, "/sock".
LONGEST_KEY = 18
SOCKET = "sock"
DOOR = "hold.sock"


@dataclass(frozen=True)
class WorkspacePaths:
    """One workspace."""

    root: pathlib.Path
    record: pathlib.Path
    socket_dir: pathlib.Path

    @property
    def lock(self) -> pathlib.Path:
        return self.root / "lock"

    @property
    def volume(self) -> pathlib.Path:
        return self.root / "volume"

    @property
    def parked(self) -> pathlib.Path:
        return self.root / "parked"

    @property
    def home(self) -> pathlib.Path:
        return self.volume / "home"

    @property
    def etc(self) -> pathlib.Path:
        return self.root / "etc"

    @property
    def log(self) -> pathlib.Path:
        return self.root / "log"

    @property
    def exit_file(self) -> pathlib.Path:
        return self.root / "exit.json"

    @property
    def usage_file(self) -> pathlib.Path:
        return self.root / "usage.json"

    @property
    def socket(self) -> pathlib.Path:
        return self.socket_dir / SOCKET

    def staging(self, generation: str) -> pathlib.Path:
        return self.root / f"staging-{generation}"

    def placing(self, generation: str) -> pathlib.Path:
        return self.root / f"placing-{generation}"


@dataclass(frozen=True)
class Layout:
    data_dir: pathlib.Path

    @property
    def root(self) -> pathlib.Path:
        return DataDir(self.data_dir).workspaces

    @property
    def running(self) -> pathlib.Path:
        return self.root / "running"

    @property
    def homes(self) -> pathlib.Path:
        return DataDir(self.data_dir).workspace_homes

    @property
    def sockets(self) -> pathlib.Path:
        return DataDir(self.data_dir).workspace_sockets

    @property
    def door(self) -> pathlib.Path:
        """The socket on which workspaces reach the platform; its folder is shown to all of them."""
        return DataDir(self.data_dir).run / "door" / DOOR

    @property
    def ide(self) -> pathlib.Path:
        """Where `codehub ide install` puts IDEs."""
        return self.data_dir / "ide"

    def of(self, workspace_id: str) -> WorkspacePaths:
        """A malformed id is like an unknown one; it never becomes a path."""
        if not ids.is_label(workspace_id):
            raise NotFoundError(f"there is no workspace {workspace_id!r}")
        return WorkspacePaths(
            self.homes / workspace_id, self.running / f"{workspace_id}.json", self.sockets / _key(workspace_id)
        )

    def prepare(self, *, as_root: bool) -> None:
        """The folders all workspaces share. As root, others may pass through to what is theirs, but not look around."""
        mode = 0o711 if as_root else 0o700
        for folder in (self.data_dir, self.root, self.homes, self.sockets.parent, self.sockets):
            if not folder.is_dir():
                folder.mkdir(mode=mode, parents=True, exist_ok=True)
                folder.chmod(mode)
        self.running.mkdir(mode=0o700, exist_ok=True)


def _key(workspace_id: str) -> str:
    if len(workspace_id) <= LONGEST_KEY:
        return workspace_id
    return hashlib.sha256(os.fsencode(workspace_id)).hexdigest()[:LONGEST_KEY]
