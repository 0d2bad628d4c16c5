"""What is ours in a namespace, by name and label: two platforms in one namespace do not see each other's. Pure.

A name is a lock as well: the API makes each object once. So a workspace has at most one pod, and a home at most one
that works on it.
"""

from dataclasses import dataclass

PREFIX = "codehub"
INSTALLATION, WORKSPACE, ROLE = f"{PREFIX}.installation", f"{PREFIX}.workspace", f"{PREFIX}.role"
NETWORK = f"{PREFIX}.network"
# Annotations.
GENERATION, UID, HOME_NAME = f"{PREFIX}.generation", f"{PREFIX}.uid", f"{PREFIX}.home"
READY, DOOR, USER = f"{PREFIX}.ready", f"{PREFIX}.door", f"{PREFIX}.user"
# Roles: of pods, of claims, of config maps.
IDE, JOB, HOME, ENTRY = "ide", "job", "home", "entry"
# What an entry can name.
VOLUME, PARKED = "volume", "parked"
# Containers of a pod.
COMMANDS, RELAY, SETUP = "commands", "relay", "setup"


@dataclass(frozen=True)
class Names:
    installation: str

    @property
    def ours(self) -> str:
        """As a selector of a list or a watch."""
        return f"{INSTALLATION}={self.installation}"

    def labels(self, workspace_id: str, role: str, **more: str) -> dict[str, str]:
        return {INSTALLATION: self.installation, WORKSPACE: workspace_id, ROLE: role, **more}

    def of(self, workspace_id: str) -> str:
        """Its pod, with the pod's secret, and its entry."""
        return f"{PREFIX}.{self.installation}.{workspace_id}"

    def home(self, workspace_id: str, token: str) -> str:
        """A claim; also the pod that works on it while no IDE does."""
        return f"{self.of(workspace_id)}.{token}"
