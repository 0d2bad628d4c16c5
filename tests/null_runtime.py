"""A runtime without a machine: keeps containers and volumes in dictionaries.

For benchmarks of the controller and for the order of its steps; real processes are tested on real runtimes.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from codehub.archives.model import Packing, Progress, Quota, no_progress
from codehub.runtimes.base import (
    Address,
    Container,
    DiskItem,
    ExecResult,
    Exit,
    Found,
    PutFile,
    RuntimeFailureError,
    Source,
    UnreadableError,
    Volume,
    Workload,
)
from codehub.templates.model import StarterFile, Template

BIRTH = datetime(2026, 1, 1, tzinfo=UTC)


class Nothing:
    """A home without anything in it, on its way out."""

    async def output(self) -> AsyncIterator[memoryview]:
        yield memoryview(b"")

    async def result(self) -> dict[str, Any]:
        return {"bytes": 0, "files": 0, "left_out": [], "moved_count": 0, "moved": []}


class NullRuntime:
    name = "null"
    node = "here"

    def __init__(self) -> None:
        self.running: dict[str, Container] = {}
        self.starters: dict[str, list[str]] = {}  # what new homes began with
        self.homes: dict[str, Volume] = {}
        self.calls: list[tuple[str, str]] = []
        self.fail: dict[str, Exception] = {}  # verb → what it raises
        self.silent: set[str] = set()  # workspaces that start and never answer
        self.looks: Counter[str] = Counter()
        self.unreadable_containers: dict[str, str] = {}  # of those in `running`
        self.unreadable_volumes: dict[str, str] = {}
        self._starts = 0

    def _call(self, verb: str, id_: str) -> None:
        self.calls.append((verb, id_))
        if verb in self.fail:
            raise self.fail[verb]

    async def containers(self) -> Found[Container]:
        self.looks["containers"] += 1
        return Found(
            {id_: found for id_, found in self.running.items() if id_ not in self.unreadable_containers},
            self.unreadable_containers,
        )

    def _require_readable(self, workspace_id: str) -> None:
        if why := self.unreadable_containers.get(workspace_id):
            raise UnreadableError(why)

    async def container(self, workspace_id: str) -> Container | None:
        self.looks["container"] += 1
        self._require_readable(workspace_id)
        found = self.running.get(workspace_id)
        return found and dataclasses.replace(found, answers=workspace_id not in self.silent)

    async def volumes(self, ids: Collection[str]) -> Found[Volume]:
        unreadable = {id_: self.unreadable_volumes[id_] for id_ in ids if id_ in self.unreadable_volumes}
        return Found({id_: self.homes[id_] for id_ in ids if id_ in self.homes and id_ not in unreadable}, unreadable)

    async def create_volume(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        self._call("create_volume", workspace_id)
        self.starters[workspace_id] = [file.path for file in starter]
        self.homes.setdefault(workspace_id, Volume(workspace_id, generation))

    @contextlib.asynccontextmanager
    async def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AsyncIterator[Packing]:
        self._call("pack", workspace_id)
        yield Nothing()

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        self._call("unpack", workspace_id)
        async for _ in chunks:
            pass
        self.homes.setdefault(workspace_id, Volume(workspace_id, generation, source.restored_from))

    async def delete_volume(self, workspace_id: str, generation: str) -> None:
        self._call("delete_volume", workspace_id)
        if workspace_id in self.homes and self.homes[workspace_id].generation == generation:
            del self.homes[workspace_id]

    async def park_volume(self, workspace_id: str, generation: str) -> None:
        self._call("park_volume", workspace_id)
        self._set_parked(workspace_id, generation, parked=True)

    async def unpark_volume(self, workspace_id: str, generation: str, made: str) -> None:
        self._call("unpark_volume", workspace_id)
        volume = self.homes.get(workspace_id)
        if volume and volume.parked and volume.generation == generation:
            self.homes[workspace_id] = Volume(workspace_id, made, volume.restored_from)

    def _set_parked(self, workspace_id: str, generation: str, *, parked: bool) -> None:
        volume = self.homes.get(workspace_id)
        if volume and volume.generation == generation:
            self.homes[workspace_id] = Volume(workspace_id, generation, volume.restored_from, parked)

    async def disk_items(self, ids: Collection[str] | None = None) -> Sequence[DiskItem]:
        return [
            DiskItem(id_, volume.generation, "parked" if volume.parked else "volume")
            for id_, volume in self.homes.items()
            if ids is None or id_ in ids
        ]

    async def start(self, workload: Workload) -> None:
        self._call("start", workload.workspace_id)
        if workload.workspace_id not in self.homes:
            raise RuntimeFailureError("there is no volume")
        self._starts += 1
        address = Address(socket=f"/nonexistent/{workload.workspace_id}.sock")
        self.running.setdefault(
            workload.workspace_id, Container(workload.workspace_id, f"run-{self._starts}", address, BIRTH)
        )

    async def warm_up(self, template: Template) -> None:
        self._call("warm_up", template.name)

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        self._call("stop", workspace_id)
        self._require_readable(workspace_id)
        self.running.pop(workspace_id, None)

    async def last_exit(self, workspace_id: str) -> Exit | None:
        return Exit(1, "no such module")

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
        return ExecResult(0, b"")

    async def put(
        self,
        workspace_id: str,
        files: Mapping[str, bytes],
        *,
        delivered: Mapping[str, Collection[str]] | None = None,
        quota: Quota | None = None,
    ) -> Sequence[PutFile]:
        return []

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        yield b""

    async def disk_usage(self, workspace_id: str) -> int:
        return 0

    async def close(self) -> None: ...
