"""What is ours on an engine, by name and label: two platforms on one engine do not see each other's. Pure.

A name is a lock as well: the engine makes each container and each volume once.
"""

from dataclasses import dataclass

PREFIX = "codehub"
INSTALLATION, WORKSPACE, ROLE = f"{PREFIX}.installation", f"{PREFIX}.workspace", f"{PREFIX}.role"
GENERATION, RESTORED_FROM, HOME_NAME = f"{PREFIX}.generation", f"{PREFIX}.restored-from", f"{PREFIX}.home"
UID, TOKEN = f"{PREFIX}.uid", f"{PREFIX}.token"
STARTED_AT, READY, USER = f"{PREFIX}.started-at", f"{PREFIX}.ready", f"{PREFIX}.user"
# What its home may have, and what it had when it was started where that was more.
DISK_BYTES, DISK_FILES = f"{PREFIX}.disk-bytes", f"{PREFIX}.disk-files"
AT_START = (f"{PREFIX}.disk-bytes-at-start", f"{PREFIX}.disk-files-at-start")
# Roles of containers, and of volumes.
IDE, RELAY, JOB = "ide", "relay", "job"
HOME, ENTRY, LINK = "home", "entry", "link"


@dataclass(frozen=True)
class Names:
    installation: str

    @property
    def ours(self) -> str:
        """As a filter of a list."""
        return f"{INSTALLATION}={self.installation}"

    def labels(self, workspace_id: str, role: str, **more: str) -> dict[str, str]:
        return {INSTALLATION: self.installation, WORKSPACE: workspace_id, ROLE: role, **more}

    def ide(self, workspace_id: str) -> str:
        return self._name(workspace_id, IDE)

    def relay(self, workspace_id: str) -> str:
        return self._name(workspace_id, RELAY)

    def job(self, workspace_id: str, token: str) -> str:
        return self._name(workspace_id, f"{JOB}-{token}")

    def home(self, workspace_id: str, token: str) -> str:
        return self._name(workspace_id, f"{HOME}-{token}")

    def entry(self, workspace_id: str, kind: str) -> str:
        return self._name(workspace_id, kind)

    def link(self, workspace_id: str) -> str:
        """The small memory disk on which an IDE's own socket is."""
        return self._name(workspace_id, LINK)

    def _name(self, workspace_id: str, what: str) -> str:
        return f"{PREFIX}-{self.installation}-{workspace_id}.{what}"
