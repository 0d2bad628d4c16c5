"""Homes as claims of the cluster: made, put in place, parked and destroyed whole, each by its generation.

A claim's name is its own, so which home a workspace has is told by its **entry**: a config map that names the home in
place and the one in the trash. It is changed only as it was read (by its version), so that of two who change it one
wins, and each change is one step; a home that no entry names is half made, or half destroyed.
"""

import contextlib
import json
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from codehub import ids
from codehub.clock import Clock
from codehub.runtimes.base import DiskItem, Found, RuntimeFailureError, Volume
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.homes import (
    LARGEST_UID,
    PARKED,
    VOLUME,
    Entry,
    Home,
    Seen,
    TakenError,
    items_of,
)
from codehub.runtimes.kubernetes import names
from codehub.runtimes.kubernetes.api import Api, ApiError, Object, objects
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.kubernetes.watch import Table

CLAIMS, ENTRIES = "persistentvolumeclaims", "configmaps"
GONE_SECONDS = 60.0
CONFLICT = 409
LARGEST_OF_USERS = 2_000_000_000


class Volumes:
    def __init__(self, api: Api, own: Names, config: RuntimeConfig, clock: Clock) -> None:
        self._api = api
        self._names = own
        self._config = config
        self.claims = Table(api, CLAIMS, own.ours, clock)
        self.entries = Table(api, ENTRIES, own.ours, clock)

    async def look(self, workspace_ids: Collection[str]) -> Found[Volume]:
        found: Found[Volume] = Found()
        for id_, seen in (await self.seen(workspace_ids)).items():
            if seen.unreadable:
                found.unreadable[id_] = next(iter(seen.unreadable.values()))
            elif volume := Volume.of(id_, seen.volume, seen.parked):
                found[id_] = volume
        return found

    async def of(self, workspace_id: str) -> Seen:
        return (await self.seen([workspace_id])).get(workspace_id, Seen())

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

    # --- changing

    async def make_home(self, workspace_id: str, generation: str) -> Home:
        name = self._names.home(workspace_id, secrets.token_hex(5))
        home = Home(name, generation, self._new_uid())
        labels = self._names.labels(workspace_id, names.HOME)
        self.claims.saw(await self._api.call("POST", CLAIMS, claim(home, labels, self._config)))
        return home

    async def change(self, workspace_id: str, entries: Mapping[str, Entry]) -> None:
        """From what was last seen to this. Raises where another was quicker."""
        name = self._names.of(workspace_id)
        body = {"data": {kind: _text(entry) for kind, entry in entries.items()}}
        known = self.entries.get(name)
        try:
            if known is None:
                metadata: Object = {"name": name, "labels": self._names.labels(workspace_id, names.ENTRY)}
                made = await self._api.call("POST", ENTRIES, {"metadata": metadata, **body})
            else:
                metadata = {key: known["metadata"][key] for key in ("name", "labels", "uid", "resourceVersion")}
                made = await self._api.call("PUT", objects(ENTRIES, name), {"metadata": metadata, **body})
        except ApiError as e:
            if e.answer in {CONFLICT, 404}:
                await _read_again(self._api, ENTRIES, self.entries, name)
                raise TakenError("another has changed which home this workspace has: look again") from e
            raise
        self.entries.saw(made)

    async def remove_home(self, name: str) -> None:
        """Gone when this returns. While a pod has it, the cluster keeps it."""
        known = await self._api.call("GET", objects(CLAIMS, name), missing=True)
        if known is None:
            return
        uid = known["metadata"]["uid"]
        await self._api.call("DELETE", objects(CLAIMS, name), {"preconditions": {"uid": uid}}, missing=True)
        for _ in range(2):
            gone = await self.claims.until(name, lambda one: _is_not(one, uid), GONE_SECONDS / 2)
            if gone or await self._api.call("GET", objects(CLAIMS, name), missing=True) is None:
                self.claims.gone(name, uid)
                return
        raise RuntimeFailureError(f"the volume {name} is still in use by a pod that is not ours to end")

    async def remove_entry(self, workspace_id: str) -> None:
        """After the last home; only as it was seen."""
        known = self.entries.get(self._names.of(workspace_id))
        if known is None or known.get("data"):
            return
        metadata = known["metadata"]
        seen = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        try:
            where = objects(ENTRIES, metadata["name"])
            await self._api.call("DELETE", where, {"preconditions": seen}, missing=True)
        except ApiError as e:
            if e.answer != CONFLICT:
                raise
        else:
            self.entries.gone(metadata["name"], metadata["uid"])

    # --- looking

    async def disk_items(self, workspace_ids: Collection[str] | None) -> list[DiskItem]:
        return [item for id_, seen in sorted((await self.seen(workspace_ids)).items()) for item in items_of(id_, seen)]

    async def seen(self, workspace_ids: Collection[str] | None) -> dict[str, Seen]:
        await self.ready()
        every = {*self.claims.workspaces(), *self.entries.workspaces()} if workspace_ids is None else workspace_ids
        found = {
            id_: sort(self.claims.of(id_), self.entries.get(self._names.of(id_))) for id_ in every if ids.is_label(id_)
        }
        return {id_: seen for id_, seen in found.items() if seen != Seen()}

    async def refresh(self, workspace_id: str) -> None:
        """As it is now: what the watch has may be a moment old.

        Each by its name, for which the API reads one; by label it would look through everybody's. A home that another
        has just begun to make, and that no entry names, is told of by the watch.
        """
        await self.ready()
        name = self._names.of(workspace_id)
        await _read_again(self._api, ENTRIES, self.entries, name)
        homes = {one["metadata"]["name"] for one in self.claims.of(workspace_id)}
        for home in homes | homes_named((self.entries.get(name) or {}).get("data") or {}):
            await _read_again(self._api, CLAIMS, self.claims, home)

    async def ready(self) -> None:
        for table in (self.claims, self.entries):
            await table.ready()

    async def close(self) -> None:
        for table in (self.claims, self.entries):
            await table.close()

    def _new_uid(self) -> int:
        """Its own: what a kernel counts by user is then a workspace's alone, as good as certainly.

        In a user namespace of the pod's own there are only so few, and the kernel counts by namespace.
        """
        if self._config.kubernetes_user_namespaces == "yes":
            return self._config.uid_base % 60_000 + 1000
        base = self._config.uid_base
        return base + secrets.randbelow(LARGEST_OF_USERS - base)


def claim(home: Home, labels: Mapping[str, str], config: RuntimeConfig) -> Object:
    about = {names.GENERATION: home.generation, names.UID: str(home.uid)}
    named = {"storageClassName": config.kubernetes_storage_class} if config.kubernetes_storage_class else {}
    return {
        "metadata": {"name": home.name, "labels": dict(labels), "annotations": about},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": config.kubernetes_volume_size}},
            **named,
        },
    }


def sort(claims: Collection[Object], entry: Object | None) -> Seen:
    """What one workspace has."""
    homes = {home.name: home for one in claims if (home := _home(one))}
    seen = Seen()
    data = (entry or {}).get("data") or {}
    for kind in (VOLUME, PARKED):
        try:
            found = _entry(data.get(kind), homes)
        except (ValueError, KeyError, TypeError) as e:
            seen.unreadable[kind] = f"what its {kind} is cannot be read ({type(e).__name__}: {e})"
            continue
        if found:
            seen.entries[kind] = found
        elif kind in data:
            seen.dead.append(kind)
    claimed = {one.home.name for one in seen.entries.values()}
    # Where an entry cannot be read, any home may be the one that it names.
    seen.unclaimed = [] if seen.unreadable else [home for name, home in homes.items() if name not in claimed]
    seen.others += [name for one in claims if (name := one["metadata"]["name"]) not in homes]
    seen.others += [entry["metadata"]["name"]] if entry else []
    return seen


def homes_named(data: Mapping[str, str]) -> set[str]:
    """By an entry, as far as it can be read."""
    found = set()
    for text in data.values():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found.add(str(json.loads(text)["home"]))
    return found


def _home(one: Object) -> Home | None:
    about = one["metadata"].get("annotations") or {}
    try:
        return Home(one["metadata"]["name"], about.get(names.GENERATION, ""), _uid(about.get(names.UID, "")))
    except ValueError:
        return None


def _uid(text: str) -> int:
    uid = int(text)
    if not 0 < uid <= LARGEST_UID:
        raise ValueError(f"its user cannot be {uid}")
    return uid


def _text(entry: Entry) -> str:
    """As the entry keeps it."""
    values = {"generation": entry.generation, "home": entry.home.name, "restored_from": entry.restored_from}
    return json.dumps(values)


def _entry(text: Any, homes: Mapping[str, Home]) -> Entry | None:
    """None: there is none, or the home that it names is gone."""
    if text is None:
        return None
    said = json.loads(text)
    generation, name, restored_from = said["generation"], said["home"], said["restored_from"]
    if not (isinstance(generation, str) and generation and isinstance(name, str)):
        raise ValueError("it names no home")
    home = homes.get(name)
    return Entry(generation, home, restored_from) if home else None


async def _read_again(api: Api, plural: str, table: Table, name: str) -> None:
    found = await api.call("GET", objects(plural, name), missing=True)
    if found:
        table.saw(found)
    elif known := table.get(name):
        table.gone(name, known["metadata"]["uid"])


def _is_not(one: Object | None, uid: str) -> bool | None:
    return True if one is None or one["metadata"]["uid"] != uid else None
