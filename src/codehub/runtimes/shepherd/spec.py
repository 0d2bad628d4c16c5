"""What a shepherd is told, by `runtimes.process`, as JSON on its standard input (it holds secrets: never arguments)."""

import json
from dataclasses import asdict, dataclass, field

BUBBLEWRAP, NAMESPACES, PLAIN = "bubblewrap", "namespaces", "none"
UMASK = 0o007  # the IDE's socket gets its directory's group (the proxy's), which must be able to write to it


@dataclass(frozen=True)
class Mount:
    """One step in building what a sandbox sees.

    `kind`: bind, read-only, symlink, tmpfs, hide, folder, proc or dev.
    """

    kind: str
    target: str
    source: str = ""
    size: int = 0  # bytes, of a tmpfs


@dataclass(frozen=True)
class Spec:
    workspace_id: str
    isolation: str
    command: list[str]
    environment: dict[str, str] = field(repr=False)
    user: str  # its name
    directory: str  # where it starts, as seen inside
    uid: int | None  # None: our own
    gid: int | None
    private_network: bool
    mounts: list[Mount]
    bubblewrap: list[str]  # its program and arguments, without descriptors and command
    home: str  # on the machine
    lock: str
    record: str  # exists while the workspace runs
    exit_file: str
    socket_dir: str  # on the machine; made anew
    socket_gid: int | None  # the proxy's group; None: the proxy is the same user as we
    log_dir: str
    log_max_bytes: int
    groups: list[str] = field(default_factory=list)  # control groups to run in
    address: dict[str, str | int | None] = field(default_factory=dict)

    def dumps(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def loads(cls, text: bytes) -> "Spec":
        values = json.loads(text)
        values["mounts"] = [Mount(**mount) for mount in values["mounts"]]
        return cls(**values)
