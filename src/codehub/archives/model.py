"""What an archive is: its keys, its meta, its errors. For every module of `archives` and the callers of `service`."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Protocol

from codehub.errors import CodeHubError

FORMAT = "tar+zstd/1"
DATA_NAME = "home.tar.zst"
META_SUFFIX = ".meta"

# (bytes done, bytes in all; 0 while the total is not known yet)
Progress = Callable[[int, int], None]
# Called with the name of each step that has just been taken. Tests end the process there; no other caller passes one.
Step = Callable[[str], None]


class Packing(Protocol):
    """A home on its way out, as a tar that is compressed. Leave its context, and the work behind it ends."""

    def output(self) -> AsyncIterator[memoryview]:
        """Each piece is good until the next is asked for. Ends only when all of it was there, else raises."""
        ...

    async def result(self) -> dict[str, Any]:
        """Bytes and files of it, what was left out, and what changed meanwhile."""
        ...


# How a home is packed, and unpacked, where it is: `runtimes` do that, and `process` for a folder of this machine.
Pack = Callable[[Progress], AbstractAsyncContextManager[Packing]]
Unpack = Callable[[AsyncGenerator[bytes | memoryview, None], int, Progress], Awaitable[None]]


def no_progress(_done: int, _total: int) -> None:
    """For callers that show none."""


def no_step(_name: str) -> None:
    """For callers that go all the way."""


class ArchiveError(CodeHubError):
    """Packing or unpacking failed and may be tried again: a full disk, a worker that was killed."""

    code: ClassVar[str] = "ActionFailed"
    title: ClassVar[str] = "The archive could not be written or read"


class SourceChangedError(ArchiveError):
    """A file changed or vanished while it was read: something still runs in the home. Trying again may help."""


class QuotaExceededError(ArchiveError):
    """The archive holds more than the home may."""

    code = "QuotaExceeded"


class ArchiveCorruptedError(ArchiveError):
    """What is stored is not what was archived. Trying again will not help, and nothing may be deleted."""

    code = "ArchiveCorrupted"


class ArchiveNotFoundError(ArchiveError):
    """No committed archive has this key."""

    code = "ArchiveNotFound"
    status = 404


class ObjectStoreError(ArchiveError):
    """The object store does not answer, or answers nonsense: the same may work in a moment."""

    code = "Unreachable"
    status = 503


@dataclass(frozen=True)
class Quota:
    """What unpacking may use at most."""

    bytes: int
    inodes: int


@dataclass(frozen=True)
class Meta:
    """The commit mark's content: written last, after the data was read back and found right."""

    sha256: str  # of the stored object
    size: int  # of the stored object
    content_bytes: int  # of all files together
    files: int  # entries of every kind
    created_at: datetime
    format: str = FORMAT

    def to_json(self) -> bytes:
        value = asdict(self)
        value["bytes"] = value.pop("content_bytes")
        value["created_at"] = self.created_at.isoformat()
        return json.dumps(value).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> "Meta":
        try:
            value = json.loads(raw)
            meta = cls(
                sha256=str(value["sha256"]),
                size=int(value["size"]),
                content_bytes=int(value["bytes"]),
                files=int(value["files"]),
                created_at=datetime.fromisoformat(value["created_at"]),
                format=str(value["format"]),
            )
        except (ValueError, KeyError, TypeError) as e:
            raise ArchiveCorruptedError(f"the meta of the archive cannot be read: {e}") from e
        if meta.format != FORMAT or len(meta.sha256) != 64 or meta.created_at.tzinfo is None:
            raise ArchiveCorruptedError(f"the meta of the archive is not one we write (format {meta.format!r})")
        return meta


class Archived(NamedTuple):
    """A committed archive. `left_out` names what an archive cannot hold (sockets, devices, pipes), some of many."""

    key: str
    meta: Meta
    left_out: tuple[str, ...] = ()


def key_base(workspace_id: str, op_id: str, epoch: int) -> str:
    return f"{workspace_id}/{op_id}/{epoch}"


def data_key(base: str) -> str:
    return f"{base}/{DATA_NAME}"


def meta_key(key: str) -> str:
    return key + META_SUFFIX
