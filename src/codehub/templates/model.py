"""A template as the rest of the product sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ActivityProfile(StrEnum):
    VSCODE = "vscode"
    JUPYTER = "jupyter"
    PLAIN = "plain"


class ActivityMode(StrEnum):
    TRAFFIC = "traffic"
    CONNECTIONS = "connections"


class WakeOn(StrEnum):
    NAVIGATION = "navigation"
    ANY = "any"


class Network(StrEnum):
    """What a workspace reaches, from a network of its own in all but the last."""

    INTERNET = "internet"  # what is outside: neither this machine, nor other workspaces, nor private networks
    ALLOWLIST = "allowlist"  # the hosts that are named
    NONE = "none"
    HOST = "host"  # the machine's own network, with everything in it


@dataclass(frozen=True)
class ProcessSpec:
    """`[process]`: how the process runtime starts it."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    network: Network | None = None  # None: as the platform says
    allow: tuple[str, ...] = ()  # for `allowlist`: more hosts than the platform names
    paths: tuple[str, ...] = ()  # more folders of this machine that the workspace may read
    warm: bool = False  # a Python program that is copied from a process with its modules loaded
    preload: tuple[str, ...] = ()  # those modules
    kernels: tuple[str, ...] = ()  # more of them, for its Jupyter kernels, which are copies then, too
    nested_namespaces: bool = False  # sandboxes inside of it (bubblewrap, rootless containers), at some risk


@dataclass(frozen=True)
class ContainerSpec:
    """`[container]`: how runtimes that run images start it. It listens on `{socket}` or on loopback, at `{port}`."""

    image: str
    command: tuple[str, ...] = ()  # empty: the image's own
    port: int = 0  # of its loopback; 0: `{socket}`, or 8080 where the command has `{port}`
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""  # a number of the image's own user; empty: a number of the workspace's own
    network: Network | None = None  # None: as the platform says
    writable_root: bool = False  # the image's own files may be changed, until the next start


@dataclass(frozen=True)
class ResourceLimits:
    """`[limits]`: what one workspace may take. 0 = no limit; not given = as the platform's settings say."""

    memory_mb: int | None = None
    processes: int | None = None
    cpus: float | None = None
    disk_mb: int | None = None
    files: int | None = None
    tmp_mb: int | None = None
    open_files: int | None = None
    cpu_weight: int | None = None
    log_kb_per_second: int | None = None


@dataclass(frozen=True)
class Words:
    """`[ko]`, and so on: a template in another language than English. What is not said there is said in English."""

    title: str = ""
    description: str = ""


@dataclass(frozen=True)
class StarterFile:
    """One of those that a new home begins with; `path` is relative to it."""

    path: str
    data: bytes = field(repr=False)
    executable: bool = False


@dataclass(frozen=True)
class Template:
    name: str
    title: str
    description: str = ""  # one sentence: what it is for, what is inside
    starter: str = ""  # a folder beside the file, whose files a new home begins with
    starter_files: tuple[StarterFile, ...] = ()  # of that folder, as the loader read them
    translations: Mapping[str, Words] = field(default_factory=dict)  # by language
    activity_profile: ActivityProfile = ActivityProfile.PLAIN
    activity: ActivityMode | None = None  # None: as the platform says
    wake_on: WakeOn = WakeOn.NAVIGATION
    strip_prefix: bool = False
    service_worker: bool = False  # its pages need one, which some browsers give to no page inside of another site's
    ready: str = "/"
    start_seconds: float = 120.0
    standby_ttl_seconds: int | None = None
    archive_ttl_seconds: int | None = None
    busy_cpus: float = 0.0  # processes that use so many cores count as activity; 0 = they do not
    process: ProcessSpec | None = None
    container: ContainerSpec | None = None
    limits: ResourceLimits = field(default_factory=ResourceLimits)

    def title_in(self, language: str) -> str:
        return self.translations.get(language, Words()).title or self.title

    def description_in(self, language: str) -> str:
        return self.translations.get(language, Words()).description or self.description
