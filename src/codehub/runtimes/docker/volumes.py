"""Homes as volumes of the engine: made, swapped in, parked and destroyed whole, each by its generation.

The engine can neither rename a volume nor change its labels, so which home a workspace has is told by an **entry**: an
empty volume with a fixed name, whose labels name the home, its generation and what it was restored from. Making an
entry is one step, which only one caller wins; a home that no entry names is half made, or half destroyed.
"""

import json
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from codehub import ids
from codehub.runtimes.base import DiskItem, Found, RuntimeFailureError, Volume
from codehub.runtimes.containers.homes import LARGEST_UID, PARKED, VOLUME, Entry, Home, Seen, TakenError, items_of
from codehub.runtimes.docker import names
from codehub.runtimes.docker.engine import Engine, EngineError, labelled, path
from codehub.runtimes.docker.names import Names

FEW = 8  # workspaces: of more than that, all are listed at once


class Volumes:
    def __init__(self, engine: Engine, own: Names) -> None:
        self._engine = engine
        self._names = own

    async def look(self, workspace_ids: Collection[str]) -> Found[Volume]:
        found: Found[Volume] = Found()
        for id_, seen in (await self._seen(workspace_ids)).items():
            if seen.unreadable:
                found.unreadable[id_] = next(iter(seen.unreadable.values()))
            elif volume := Volume.of(id_, seen.volume, seen.parked):
                found[id_] = volume
        return found

    async def of(self, workspace_id: str) -> Seen:
        return (await self._seen([workspace_id])).get(workspace_id, Seen())

    async def require(self, workspace_id: str) -> Entry:
        """The one in place."""
        seen = await self.of(workspace_id)
        seen.require_readable()
        if seen.volume is None:
            raise RuntimeFailureError("the workspace has no volume")
        return seen.volume

    async def generation(self, workspace_id: str, generation: str) -> tuple[Home, bool]:
        """Where this generation's files are, and whether it is parked."""
        seen = await self.of(workspace_id)
        for kind, entry in seen.entries.items():
            if entry.generation == generation:
                return entry.home, kind == PARKED
        raise RuntimeFailureError(f"the workspace has no volume of generation {generation}")

    async def make_home(self, workspace_id: str, generation: str, uid: int) -> Home:
        name = self._names.home(workspace_id, secrets.token_hex(8))
        labels = {names.GENERATION: generation, names.UID: str(uid)}
        await self._create(name, self._names.labels(workspace_id, names.HOME, **labels))
        return Home(name, generation, uid)

    async def enter(self, workspace_id: str, kind: str, entry: Entry) -> None:
        """Make this the one in place, or the parked one. Raises where another is."""
        token = secrets.token_hex(8)
        labels = {
            names.GENERATION: entry.generation,
            names.HOME_NAME: entry.home.name,
            names.UID: str(entry.home.uid),
            names.TOKEN: token,
            **({} if entry.restored_from is None else {names.RESTORED_FROM: entry.restored_from}),
        }
        name = self._names.entry(workspace_id, kind)
        made = await self._create(name, self._names.labels(workspace_id, names.ENTRY, **labels))
        there = _label(made, names.GENERATION), _label(made, names.HOME_NAME)
        if _label(made, names.TOKEN) != token and there != (entry.generation, entry.home.name):
            raise TakenError(f"there is a {kind} already, of generation {there[0]}")

    async def leave(self, workspace_id: str, kind: str) -> None:
        await self._remove(self._names.entry(workspace_id, kind))

    async def make_link(self, workspace_id: str, uid: int) -> str:
        """Memory, and little of it: it holds one socket, and only while something runs on it."""
        name = self._names.link(workspace_id)
        await self._remove(name)
        options = f"size=64k,nr_inodes=64,mode=0700,uid={uid},gid={uid},nosuid,nodev,noexec"
        await self._create(
            name,
            self._names.labels(workspace_id, names.LINK),
            DriverOpts={"type": "tmpfs", "device": "tmpfs", "o": options},
        )
        return name

    async def is_still(self, home: Home) -> bool:
        """Asked when a container has it: the engine makes an empty one in place of one that has just gone."""
        found = await self._engine.call("GET", path("volumes", home.name), missing=True)
        return bool(found) and (found.get("Labels") or {}).get(names.ROLE) == names.HOME

    async def remove_home(self, name: str) -> None:
        await self._remove(name)

    async def remove_rest(self, workspace_id: str) -> None:
        """After the last home: what holds nothing."""
        seen = await self.of(workspace_id)
        if not (seen.entries or seen.unreadable or seen.unclaimed):
            for name in seen.others:
                await self._remove(name)

    async def disk_items(self, workspace_ids: Collection[str] | None) -> list[DiskItem]:
        found = await self._seen(workspace_ids)
        return [item for id_, seen in sorted(found.items()) for item in items_of(id_, seen)]

    async def largest_uid(self) -> int:
        listed = await self._list(self._names.ours)
        return max((int(uid) for one in listed if (uid := _label(one, names.UID)).isdigit()), default=0)

    async def _seen(self, workspace_ids: Collection[str] | None) -> dict[str, Seen]:
        if workspace_ids is not None and len(workspace_ids) <= FEW:
            filters = [f"{names.WORKSPACE}={id_}" for id_ in workspace_ids]
            listed = [one for one_of in filters for one in await self._list(self._names.ours, one_of)]
        else:
            listed = await self._list(self._names.ours)
        wanted = None if workspace_ids is None else set(workspace_ids)
        by_workspace: dict[str, list[Mapping[str, Any]]] = {}
        for one in listed:
            id_ = _label(one, names.WORKSPACE)
            if ids.is_label(id_) and (wanted is None or id_ in wanted):
                by_workspace.setdefault(id_, []).append(one)
        return {id_: self._sort(id_, found) for id_, found in by_workspace.items()}

    def _sort(self, workspace_id: str, listed: Iterable[Mapping[str, Any]]) -> Seen:
        by_name = {str(one["Name"]): one for one in listed}
        homes = {name: home for name, one in by_name.items() if (home := _home(name, one))}
        seen = Seen()
        for kind in (VOLUME, PARKED):
            name = self._names.entry(workspace_id, kind)
            if one := by_name.pop(name, None):
                try:
                    entry = _entry(one, homes)
                except ValueError as e:
                    seen.unreadable[kind] = f"what its {kind} is cannot be read ({name}: {e})"
                    continue
                if entry:
                    seen.entries[kind] = entry
                else:
                    seen.dead.append(kind)
                    seen.others.append(name)
        _drop_stale(seen)
        claimed = {entry.home.name for entry in seen.entries.values()}
        # Where an entry cannot be read, any home may be the one that it names.
        seen.unclaimed = [] if seen.unreadable else [home for name, home in homes.items() if name not in claimed]
        seen.others += [name for name in by_name if name not in homes]
        return seen

    async def _list(self, *labels: str) -> list[Mapping[str, Any]]:
        answer = await self._engine.call("GET", "/volumes", filters=labelled(*labels))
        return answer.get("Volumes") or []

    async def _create(self, name: str, labels: Mapping[str, str], **more: object) -> Mapping[str, Any]:
        made: Mapping[str, Any] = await self._engine.call(
            "POST", "/volumes/create", {"Name": name, "Driver": "local", "Labels": dict(labels), **more}
        )
        return made

    async def _remove(self, name: str) -> None:
        try:
            await self._engine.call("DELETE", path("volumes", name), missing=True)
        except EngineError as e:
            if e.answer == 409:
                raise RuntimeFailureError(f"a container still has the volume: {e.detail}") from e
            raise


def _label(one: Mapping[str, Any], name: str) -> str:
    return str((one.get("Labels") or {}).get(name, ""))


def _uid(one: Mapping[str, Any]) -> int:
    uid = int(_label(one, names.UID))
    if not 0 < uid <= LARGEST_UID:
        raise ValueError(f"its user cannot be {uid}")
    return uid


def _home(name: str, one: Mapping[str, Any]) -> Home | None:
    if _label(one, names.ROLE) != names.HOME:
        return None
    try:
        return Home(name, _label(one, names.GENERATION), _uid(one))
    except ValueError:
        return None


def _entry(one: Mapping[str, Any], homes: Mapping[str, Home]) -> Entry | None:
    """None: the home that it names is gone."""
    generation, name = _label(one, names.GENERATION), _label(one, names.HOME_NAME)
    if not (generation and name):
        raise ValueError(f"its labels are {json.dumps(one.get('Labels'))}")
    home = homes.get(name)
    return Entry(generation, home, (one.get("Labels") or {}).get(names.RESTORED_FROM)) if home else None


def _drop_stale(seen: Seen) -> None:
    """Killed between its two steps, parking or taking back leaves two entries of one home: the one in place counts."""
    if seen.volume and seen.parked and seen.volume.home == seen.parked.home:
        seen.stale = seen.entries.pop(PARKED)
