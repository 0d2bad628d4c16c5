"""Containers of workspaces: started with a relay beside them, looked at, ended. Called by `runtime`, one verb at a time
for each workspace; each step may be killed and repeated.
"""

import asyncio
import contextlib
import math
import os
import pathlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeGuard

from codehub import ids
from codehub.clock import Clock
from codehub.runtimes import connect, files, limits
from codehub.runtimes.base import (
    Address,
    Container,
    Exit,
    Found,
    ImageNotFoundError,
    RuntimeFailureError,
    StartFailedError,
    Workload,
)
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.homes import Entry
from codehub.runtimes.docker import bodies, logs, names, networks
from codehub.runtimes.docker.bodies import Place
from codehub.runtimes.docker.disk_guard import Amount, amount_when_full
from codehub.runtimes.docker.engine import CALL_SECONDS, Engine, EngineError, labelled, path
from codehub.runtimes.docker.names import Names
from codehub.runtimes.layout import Layout
from codehub.runtimes.sandbox import user_name
from codehub.system.privileges import Account

ANSWER_SECONDS = 1.0
EXIT_TAIL = 4096
REMOVE_SECONDS = 30.0
MEMORY_RAN_OUT = "\n[codehub] the memory limit was reached, and processes were ended because of it\n"

InPlace = Callable[[str, Entry], Awaitable[bool]]


class Lifecycle:
    def __init__(
        self,
        engine: Engine,
        own: Names,
        layout: Layout,
        config: RuntimeConfig,
        account: Account | None,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._names = own
        self._layout = layout
        self._config = config
        self._gid = account.gid if account else os.getgid()
        self._clock = clock
        self._engines_disk: pathlib.Path | None = None
        self._tidying: set[asyncio.Task[None]] = set()

    # --- looking

    async def all(self) -> Found[Container]:
        listed = await self._list(self._names.ours, status=["running"])
        by_role = {
            role: {_workspace(one): one for one in listed if _role(one) == role} for role in (names.IDE, names.RELAY)
        }
        found: Found[Container] = Found()
        for id_, one in by_role[names.IDE].items():
            try:
                found[id_] = self._container(id_, str(one["Id"]), one["Labels"])
            except (ValueError, KeyError) as e:
                found.unreadable[id_] = f"it runs, but its labels cannot be read: {e}"
        for id_ in by_role[names.RELAY].keys() - by_role[names.IDE].keys():
            self._tidy(str(by_role[names.RELAY][id_]["Id"]))
        return found

    async def one(self, workspace_id: str) -> Container | None:
        info = await self._inspect(self._names.ide(workspace_id))
        if not _runs(info):
            return None
        labels = info["Config"]["Labels"]
        address = self._address(workspace_id)
        answers = await _answers(address, labels.get(names.READY, "/"))
        return self._container(workspace_id, info["Id"], labels, answers=answers)

    async def is_running(self, workspace_id: str) -> bool:
        return _runs(await self._inspect(self._names.ide(workspace_id)))

    async def first_process(self, workspace_id: str) -> int | None:
        info = await self._inspect(self._names.ide(workspace_id))
        return int(info["State"]["Pid"]) if _runs(info) else None

    async def running(self, workspace_id: str) -> Mapping[str, Any]:
        """All that the engine knows of one that runs."""
        info = await self._inspect(self._names.ide(workspace_id))
        if not _runs(info):
            raise RuntimeFailureError("the workspace is not running")
        return info

    async def last_exit(self, workspace_id: str) -> Exit | None:
        info = await self._inspect(self._names.ide(workspace_id))
        if info is None or info["State"]["Status"] not in {"exited", "dead"}:
            return None
        state = info["State"]
        pieces = [piece async for piece in logs.read(self._engine, info["Id"], self._clock, EXIT_TAIL, follow=False)]
        tail = b"".join(pieces).decode(errors="replace") + (MEMORY_RAN_OUT if state.get("OOMKilled") else "")
        return Exit(state["ExitCode"], state.get("Error", "") + tail, _time(state.get("FinishedAt", "")))

    async def last_uid(self, workspace_id: str) -> int | None:
        info = await self._inspect(self._names.ide(workspace_id))
        text = info["Config"]["Labels"].get(names.UID, "") if info else ""
        return int(text) if text.isdigit() else None

    async def left_over(self, workspace_ids: Collection[str] | None) -> set[str]:
        """Workspaces of which there is a container, or a folder on this machine."""
        found = {_workspace(one) for one in await self._list(self._names.ours, all_="1")}
        with contextlib.suppress(FileNotFoundError):
            found |= {folder.name for folder in await asyncio.to_thread(_listing, self._layout.homes)}
        return {id_ for id_ in found if ids.is_label(id_) and (workspace_ids is None or id_ in workspace_ids)}

    # --- starting

    async def runs_already(self, workload: Workload) -> bool:
        """With the relay beside it; what is left of an earlier one is removed."""
        info = await self._inspect(self._names.ide(workload.workspace_id))
        if _runs(info):
            await self._ensure_relay(workload, info)
            return True
        if info:
            await self.remove(workload.workspace_id)
        return False

    async def require_space(self, needed: int = 0) -> None:
        if self._engines_disk is None:
            self._engines_disk = pathlib.Path((await self._engine.call("GET", "/info"))["DockerRootDir"])
        await asyncio.to_thread(limits.require_space, self._config, self._engines_disk, needed)

    async def start(self, workload: Workload, entry: Entry, uid: int, link: str | None, in_place: InPlace) -> None:
        network = await networks.of(workload, self._config, self._engine)
        image = await self._image(bodies.spec_of(workload).image)
        place = await asyncio.to_thread(self._place, workload, entry.home.name, uid, link, network, image)
        allowed = bodies.limits_of(workload, self._config)
        body = bodies.ide(workload, place, allowed, self._config.log_max_bytes, self._names)
        ide = await self._create(self._names.ide(workload.workspace_id), body)
        try:
            relay = await self._create_relay(ide, workload, place)
            # A container holds its volume from here on; whether that is still the home, only now can be told.
            if not await in_place(workload.workspace_id, entry):
                raise RuntimeFailureError("the workspace has no volume: it has just gone")  # noqa: TRY301
            await self._begin(ide, relay)
        except BaseException:
            await asyncio.shield(self.remove(workload.workspace_id))
            raise

    async def _begin(self, ide: str, relay: str) -> None:
        try:
            await self._engine.call("POST", path("containers", ide, "start"))
        except EngineError as e:
            raise StartFailedError(e.detail) from e
        try:
            await self._engine.call("POST", path("containers", relay, "start"))
        except EngineError as e:
            if _runs(await self._inspect(ide)):
                raise StartFailedError(e.detail) from e
            # It has ended at once, and there is nothing to stand beside: how, is to be told.

    async def _ensure_relay(self, workload: Workload, info: Mapping[str, Any]) -> None:
        """Somebody was killed between the two starts, or the relay was ended by hand."""
        relay = await self._inspect(self._names.relay(workload.workspace_id))
        if _runs(relay):
            return
        if relay:
            await self._remove(relay["Id"])
        uid = int(info["Config"]["Labels"][names.UID])
        link = self._names.link(workload.workspace_id) if bodies.uses_socket(bodies.spec_of(workload)) else None
        place = await asyncio.to_thread(self._place, workload, "", uid, link, "", {})
        fresh = await self._create_relay(info["Id"], workload, place)
        await self._engine.call("POST", path("containers", fresh, "start"))

    async def _image(self, image: str) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = await self._engine.call("GET", f"/images/{image}/json")
        except EngineError as e:
            if e.answer == 404:
                raise ImageNotFoundError(e.detail) from e
            raise
        return found

    async def _create_relay(self, ide: str, workload: Workload, place: Place) -> str:
        body = bodies.relay_beside(ide, workload, place, self._config.platform_image, self._names)
        name = self._names.relay(workload.workspace_id)
        await self._remove(name)
        return await self._create(name, body, "CODEHUB_PLATFORM_IMAGE; `make images` makes it")

    async def _create(self, name: str, body: Mapping[str, Any], hint: str = "") -> str:
        try:
            return str((await self._engine.call("POST", "/containers/create", body, name=name))["Id"])
        except EngineError as e:
            if e.answer == 404:
                raise ImageNotFoundError(f"{e.detail} ({hint})" if hint else e.detail) from e
            if e.answer == 409:
                raise RuntimeFailureError("another start of it is under way") from e
            raise StartFailedError(e.detail) from e

    def _place(
        self, workload: Workload, home: str, uid: int, link: str | None, network: str, image: Mapping[str, Any]
    ) -> Place:
        """With what lies ready on this machine, and may be written again at any time."""
        paths = self._layout.of(workload.workspace_id)
        self._layout.prepare(as_root=True)
        paths.root.mkdir(mode=0o711, exist_ok=True)
        paths.etc.mkdir(mode=0o755, exist_ok=True)
        for name, text in bodies.etc_files(user_name(workload.owner), uid).items():
            files.write_whole(paths.etc / name, text, 0o644)
        # Its relay makes the socket in there; the group of the front door may enter.
        paths.socket_dir.mkdir(mode=0o750, exist_ok=True)
        os.chown(paths.socket_dir, uid, self._gid)
        paths.socket_dir.chmod(0o2750)
        door, allowed = self._layout.door.parent, bodies.limits_of(workload, self._config)
        full = amount_when_full(paths.usage_file, Amount(allowed.disk_mb * limits.MIB, allowed.files))
        return Place(
            home=home,
            link=link,
            uid=uid,
            socket_dir=str(paths.socket_dir),
            etc=str(paths.etc),
            door_dir=str(door) if door.is_dir() else "",
            network=network,
            gid=self._gid,
            started_at=self._clock.now().isoformat(),
            path=_path_of(image),
            full=(full.bytes, full.files),
        )

    # --- ending

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        """The container stays, ended, and tells how it ended, until the next start or the end of its volume."""
        grace, ide = math.ceil(grace_seconds), self._names.ide(workspace_id)
        info = await self._inspect(ide)
        if _runs(info):
            await self._engine.call(
                "POST", path("containers", ide, "stop"), missing=True, seconds=grace + CALL_SECONDS, t=str(grace)
            )
        elif info and info["State"]["Status"] == "created":
            await self._remove(ide)
        await self._remove(self._names.relay(workspace_id))

    async def remove(self, workspace_id: str, *, jobs: bool = False) -> None:
        for name in (self._names.ide(workspace_id), self._names.relay(workspace_id)):
            await self._remove(name)
        if jobs:
            await self.remove_jobs(workspace_id)

    async def remove_jobs(self, workspace_id: str, volume: str | None = None) -> None:
        """Also those of a platform that was killed before it could start them."""
        filters = {"volume": [volume]} if volume else {}
        ours = f"{names.WORKSPACE}={workspace_id}", f"{names.ROLE}={names.JOB}"
        for one in await self._list(self._names.ours, *ours, all_="1", **filters):
            await self._remove(str(one["Id"]))

    def remove_folders(self, workspace_id: str) -> None:
        paths = self._layout.of(workspace_id)
        for folder in (paths.socket_dir, paths.root):
            files.remove_tree(folder)

    async def close(self) -> None:
        await asyncio.gather(*self._tidying, return_exceptions=True)

    def _tidy(self, relay: str) -> None:
        """One whose IDE has ended stands beside nothing."""
        task = asyncio.create_task(self._remove(relay))
        self._tidying.add(task)
        task.add_done_callback(self._tidied)

    def _tidied(self, task: asyncio.Task[None]) -> None:
        self._tidying.discard(task)
        if not task.cancelled():
            task.exception()  # the next look finds it again

    async def _remove(self, container: str) -> None:
        try:
            await self._engine.call("DELETE", path("containers", container), missing=True, force="1", v="1")
        except EngineError as e:
            if e.answer != 409:
                raise
            # Another has begun to remove it; until it is gone it holds its volumes.
            wait = path("containers", container, "wait")
            await self._engine.call("POST", wait, missing=True, seconds=REMOVE_SECONDS, condition="removed")

    async def _inspect(self, container: str) -> Mapping[str, Any] | None:
        info: Mapping[str, Any] | None = await self._engine.call(
            "GET", path("containers", container, "json"), missing=True
        )
        return info

    async def _list(self, *labels: str, all_: str = "0", **filters: list[str]) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = await self._engine.call(
            "GET", "/containers/json", filters=labelled(*labels, **filters), all=all_
        )
        return found

    def _address(self, workspace_id: str) -> Address:
        return Address(socket=str(self._layout.of(workspace_id).socket))

    def _container(
        self, workspace_id: str, identity: str, labels: Mapping[str, str], *, answers: bool | None = None
    ) -> Container:
        started_at = datetime.fromisoformat(labels[names.STARTED_AT])
        return Container(workspace_id, identity, self._address(workspace_id), started_at, answers)


def _runs(info: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    return info is not None and bool(info["State"]["Running"])


def _role(one: Mapping[str, Any]) -> str:
    return str(one["Labels"].get(names.ROLE))


def _workspace(one: Mapping[str, Any]) -> str:
    return str(one["Labels"].get(names.WORKSPACE))


def _listing(folder: pathlib.Path) -> list[pathlib.Path]:
    return list(folder.iterdir())


def _path_of(image: Mapping[str, Any]) -> str:
    variables = (image.get("Config") or {}).get("Env") or []
    return next((text.removeprefix("PATH=") for text in variables if text.startswith("PATH=")), bodies.PATH)


def _time(text: str) -> datetime | None:
    """The engine has nanoseconds, which Python cannot read."""
    try:
        return datetime.fromisoformat(text[:19] + "+00:00")
    except ValueError:
        return None


async def _answers(address: Address, ready: str) -> bool:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await connect.status_of(address, ready) < 500
    except (OSError, ValueError, TimeoutError):
        return False
