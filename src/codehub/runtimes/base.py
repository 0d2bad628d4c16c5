"""The runtime protocol: what the controller may ask of whatever runs workspaces. One contract suite tests them all.

Every verb is idempotent: asked again, it finds its work done. None decides anything; none knows the database. A runtime
reports what *is*; what that means is judged in `workspaces.rules`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar, runtime_checkable

from codehub.archives.model import Packing, Progress, Quota, no_progress
from codehub.errors import CodeHubError
from codehub.templates.model import StarterFile, Template

T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    """Where the proxy finds an IDE: a Unix socket, or a host and port."""

    socket: str | None = None
    host: str | None = None
    port: int | None = None
    key: str | None = None  # the name of the door (`system.doors`), where it is one


@dataclass(frozen=True)
class Container:
    """An IDE server that exists (a process tree, a container, a pod). One that has exited does not exist."""

    workspace_id: str
    identity: str  # changes with every start: pid + start time + boot id, or the container's id
    address: Address
    started_at: datetime
    # Does the IDE answer on its address (the template's `ready` below 500)? None: it was not asked.
    answers: bool | None = field(default=None, compare=False)


class Found(dict[str, T], Generic[T]):
    """What was observed, by workspace. Of those in `unreadable` it cannot be said; the text is why."""

    def __init__(self, found: Mapping[str, T] | None = None, unreadable: Mapping[str, str] | None = None) -> None:
        super().__init__(found or {})
        self.unreadable = dict(unreadable or {})


class Kept(Protocol):
    """What a runtime has noted of a home."""

    @property
    def generation(self) -> str: ...
    @property
    def restored_from(self) -> str | None: ...


@dataclass(frozen=True)
class Volume:
    """A home directory that exists. `generation` is the `op_id` of the operation that made it."""

    workspace_id: str
    generation: str
    restored_from: str | None = None  # the archive key it was unpacked from: the restore marker
    parked: bool = False  # in the trash: kept, and not startable
    parked_generation: str | None = None  # the generation of another one that is parked

    @classmethod
    def of(cls, workspace_id: str, here: "Kept | None", parked: "Kept | None") -> "Volume | None":
        """Of what is in place and what is in the trash; the one in place is what counts."""
        if here:
            trash = parked.generation if parked else None
            return cls(workspace_id, here.generation, here.restored_from, parked_generation=trash)
        return cls(workspace_id, parked.generation, parked.restored_from, parked=True) if parked else None


@dataclass(frozen=True)
class DiskItem:
    """Something of a workspace that takes disk, as the garbage collection sees it."""

    workspace_id: str
    generation: str  # empty for the rest that belongs to no volume
    kind: str  # `volume`, `parked`, `unpacked` (by a restore that did not end), `unreadable`, `rest`


@dataclass(frozen=True)
class Source:
    """What a home is unpacked from."""

    restored_from: str  # the archive's key
    quota: Quota
    expected_bytes: int = 0  # of content, as far as it is known: there has to be room for it
    progress: Progress = no_progress


@dataclass(frozen=True)
class Exit:
    """How the last container of a workspace ended, for `error_info`."""

    code: int | None  # None: unknown
    log_tail: str
    at: datetime | None = None


@dataclass(frozen=True)
class Workload:
    """What to start."""

    workspace_id: str
    owner: str
    template: Template
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    trusted: bool = False  # its owner is an admin: may run even where nothing keeps workspaces apart

    @property
    def base_path(self) -> str:
        return f"/w/{self.workspace_id}/"


@dataclass(frozen=True)
class ExecResult:
    exit_code: int
    output: bytes  # both streams, in order; of more than is kept, the end
    left_out: int = 0  # bytes before it
    timed_out: bool = False

    @property
    def truncated(self) -> bool:
        return self.left_out > 0


class Cold(StrEnum):
    """Why a workspace whose template wants a warm start got a cold one."""

    SANDBOX = "sandbox"  # bubblewrap, or none: they start programs themselves
    PROGRAM = "program"  # not one of Python, or not found by its path
    ENVIRONMENT = "environment"  # has what an interpreter reads when it starts
    OWN_PACKAGES = "own_packages"  # in the home, which go before those that are loaded
    NOT_LOADED = "not_loaded"  # yet
    OUTDATED = "outdated"  # what was loaded has changed since, or its parent does not answer
    UNFIT = "unfit"  # what is to be loaded cannot be shared


class PutOutcome(StrEnum):
    WRITTEN = "written"
    UNCHANGED = "unchanged"  # it is there already, or is being worked on since it was delivered
    BESIDE = "beside"  # a person's own file stands in its place, and stays


@dataclass(frozen=True)
class PutFile:
    """What became of a file that was put into a home."""

    path: str
    outcome: PutOutcome
    name: str  # the path it really has


class RuntimeFailureError(CodeHubError):
    """A verb failed and may be tried again."""

    code = "ActionFailed"


class UnreadableError(RuntimeFailureError):
    """Something of a workspace is there, and what it is cannot be told."""


class StartFailedError(RuntimeFailureError):
    """The IDE could not be started, or exited at once."""

    code = "StartFailed"


class ImageNotFoundError(RuntimeFailureError):
    """What the template wants to start is not there: trying again will not help."""

    code = "ImageNotFound"


class HomeFullError(RuntimeFailureError):
    """The home is at its limit, or the disk is."""

    code = "HomeFull"


class IsolationUnavailableError(RuntimeFailureError):
    """This machine cannot keep workspaces apart, so nothing is started that is not an admin's own."""

    code = "IsolationUnavailable"


class Logs(Protocol):
    """All that the API wants of a runtime."""

    def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        """The IDE's own log, its end first; then, with `follow`, what comes."""
        ...


@runtime_checkable
class Watching(Protocol):
    """A runtime that runs on an engine, whose leader has to look after what the engine does not."""

    def watching(self, ended: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """`ended`: called when the engine tells that an IDE runs no more, by those that are told."""
        ...


@runtime_checkable
class Announcing(Protocol):
    """A runtime that learns when an IDE begins to listen, so that one that starts need not be asked all the time."""

    async def begins_to_listen(self, workspace_id: str, pause: float) -> bool:
        """Wait until it does, or for a while: has that changed? Listens already, or cannot be watched: `pause`."""
        ...


class Runtime(Logs, Protocol):
    name: str

    @property
    def node(self) -> str:
        """What this runtime sees: one machine, or a whole cluster. Others' workspaces are none of its business."""
        ...

    async def containers(self) -> Found[Container]:
        """All that exist now, in one look. Costs by how many run, not by how many workspaces there are."""
        ...

    async def container(self, workspace_id: str) -> Container | None:
        """This one, asked whether it answers, which is bounded to about a second. Costs the same however many run."""
        ...

    async def volumes(self, ids: Collection[str]) -> Found[Volume]:
        """Which of these have a volume."""
        ...

    async def create_volume(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        """A home with these files alone, there whole or not at all; one that exists is left alone, whatever it has."""
        ...

    def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AbstractAsyncContextManager[Packing]:
        """This generation as a stream. A parked one is still; one in place is packed as it is, also while in use."""
        ...

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        """Unpack a stream beside the volume and swap it in whole, as this generation; refuses when one exists.

        A stream that raises leaves nothing behind. One of the same generation from the same archive is there already:
        then the stream is closed unread.
        """
        ...

    async def delete_volume(self, workspace_id: str, generation: str) -> None:
        """Destroy everything of this generation, wherever it lies; others are not touched. Gone already is fine."""
        ...

    async def park_volume(self, workspace_id: str, generation: str) -> None:
        """Move this generation to the trash: kept, reported as parked, not startable."""
        ...

    async def unpark_volume(self, workspace_id: str, generation: str, made: str) -> None:
        """Take this generation back as `made`: whoever still means to destroy the one in the trash finds it gone."""
        ...

    async def disk_items(self, ids: Collection[str] | None = None) -> Sequence[DiskItem]:
        """All that takes disk, of these workspaces or of whichever there are, known to anybody or not. Asked rarely."""
        ...

    async def start(self, workload: Workload) -> Cold | None:
        """Start the IDE. Returns when the process exists; whether it answers is observed. Running already is fine.

        A template may want a warm start. Where that cannot be, the start is cold, and the answer is why.
        """
        ...

    async def warm_up(self, template: Template) -> None:
        """Make the next start of this template quick, where that can be; asked often, it finds its work done."""
        ...

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        """Ask, wait, insist: afterwards nothing of it is left."""
        ...

    async def last_exit(self, workspace_id: str) -> Exit | None: ...

    async def exec(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        max_output: int = 1_000_000,
        contained: bool = False,
    ) -> ExecResult:
        """Run a command inside a running workspace, as its user, in its home.

        `contained`: whatever it starts ends with it, at its time-out or with us, at the latest; and when it writes far
        more than is kept, nothing reads on.
        """
        ...

    async def put(
        self,
        workspace_id: str,
        files: Mapping[str, bytes],
        *,
        delivered: Mapping[str, Collection[str]] | None = None,
        quota: Quota | None = None,
    ) -> Sequence[PutFile]:
        """Write files into the home (relative paths, never outside it), owned by its user.

        `delivered`: by path, the SHA-256 of what was put there before. Given, only such a file is replaced; one that a
        person changed stays, and what is new is put beside it under another name. `quota`: the home's; beyond it
        nothing is written (`HomeFullError`).
        """
        ...

    async def disk_usage(self, workspace_id: str) -> int:
        """Bytes the home takes on disk."""
        ...

    async def close(self) -> None:
        """Let go of everything without touching what runs: workspaces outlive us."""
        ...
