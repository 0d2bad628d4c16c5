"""What a shepherd is told, by `runtimes.process`, as JSON on its standard input (it holds secrets: never arguments)."""

import json
from dataclasses import asdict, dataclass, field

from codehub.runtimes.shepherd.shares import Shares

BUBBLEWRAP, NAMESPACES, PLAIN = "bubblewrap", "namespaces", "none"
HOST_NETWORK, NO_NETWORK, RELAY = "host", "none", "relay"
SLIRP4NETNS, PASTA, VETH = "slirp4netns", "pasta", "veth"
USER_MODE_RESOLVER = "10.0.2.3"  # slirp4netns and pasta answer there, and ask whom this machine asks
RELAY_PORT = 3128  # on the workspace's own loopback
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
class NetworkSpec:
    """How a workspace goes out. `kind`: host, none, relay, slirp4netns, pasta, veth; the rest as they need it."""

    kind: str = NO_NETWORK
    allow: list[str] | None = None  # the relay: only these hosts; None: whatever is outside
    private: list[str] = field(default_factory=list)  # private networks that are open
    firewall: str = ""  # loaded inside, before there is a way out
    firewall_outside: str = ""  # loaded on this machine
    own: list[str] = field(default_factory=list)  # this machine's addresses, as the firewall knows them
    programs: dict[str, str] = field(default_factory=dict)  # where they are

    @property
    def private_network(self) -> bool:
        return self.kind != HOST_NETWORK


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
    network: NetworkSpec
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
    shares: Shares = field(default_factory=Shares)
    ready: str = "/"  # the path that answers below 500 when it is up

    def dumps(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def loads(cls, text: bytes) -> "Spec":
        values = json.loads(text)
        values["network"] = NetworkSpec(**values["network"])
        values["mounts"] = [Mount(**mount) for mount in values["mounts"]]
        values["shares"] = Shares(**values["shares"])
        return cls(**values)
