"""Pods: of workspaces, and of homes that are worked on alone. Started, looked at, ended. Called by `runtime`, one verb
at a time for each workspace; each step may be killed and repeated.

A pod's name is the lock: while there is one of a workspace, also one that the cluster cannot tell to have ended, there
is no second. Nothing here ends one by force, which would only forget it.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from codehub import ids, logs
from codehub.clock import Clock
from codehub.runtimes import connect
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
from codehub.runtimes.containers import door
from codehub.runtimes.containers.homes import Entry, Home
from codehub.runtimes.kubernetes import bodies, judging, names
from codehub.runtimes.kubernetes.api import Api, ApiError, Object, objects
from codehub.runtimes.kubernetes.asking import Asking
from codehub.runtimes.kubernetes.bodies import Start
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.kubernetes.watch import Table, pruned
from codehub.runtimes.limits import Limits

log = logs.get()
PODS, SECRETS = "pods", "secrets"
ANSWER_SECONDS = 1.0
START_SECONDS = 600.0  # the template's own time is shorter
REFUSED_SECONDS = 20.0  # that a cluster may take to find that an image or a node is there after all
ENDED_SECONDS = 30.0  # from the IDE's end until the cluster has noticed
GONE_SECONDS = 60.0
FORBIDDEN, CONFLICT, UNPROCESSABLE = 403, 409, 422
InPlace = Callable[[str, Entry], Awaitable[bool]]


class Lifecycle:
    def __init__(self, api: Api, own: Names, config: RuntimeConfig, asking: Asking, clock: Clock) -> None:
        self._api = api
        self._names = own
        self._config = config
        self._asking = asking
        self._clock = clock
        self.pods = Table(api, PODS, own.ours, clock, self._note)
        self._running: Found[Container] = Found()
        self.ended: Callable[[], None] = lambda: None  # called when an IDE runs no more

    # --- looking

    async def all(self) -> Found[Container]:
        await self.pods.ready()
        return Found(self._running, self._running.unreadable)

    def _note(self, before: Object | None, after: Object | None) -> None:
        """Kept with each change, so that a look at thousands judges none of them again."""
        pod = after or before
        if pod is None or _role(pod) != names.IDE:
            return
        id_ = _workspace(pod)
        ran = self._running.pop(id_, None) or self._running.unreadable.pop(id_, None)
        if after is None or not judging.runs(after):
            if ran:
                self.ended()
            return
        try:
            self._running[id_] = _container(id_, after)
        except (ValueError, KeyError) as e:
            self._running.unreadable[id_] = f"it runs, but what the cluster says of it cannot be read: {e}"

    async def one(self, workspace_id: str) -> Container | None:
        await self.pods.ready()
        pod = self.pods.get(self._names.of(workspace_id))
        if pod is None or not judging.runs(pod):
            return None
        container = _container(workspace_id, pod)
        answers = await self._answers(container.address, pod["metadata"]["annotations"].get(names.READY, "/"))
        return Container(workspace_id, container.identity, container.address, container.started_at, answers)

    async def running(self, workspace_id: str) -> Object:
        """All that is known of one that runs."""
        await self.pods.ready()
        pod = self.pods.get(self._names.of(workspace_id))
        if pod is None or not judging.runs(pod):
            raise RuntimeFailureError("the workspace is not running")
        return pod

    async def there(self, workspace_id: str) -> Object | None:
        """Its pod, running, or about to, or not known to have ended: asked of the API itself."""
        pod = await self._read(self._names.of(workspace_id))
        return None if pod is None or judging.has_ended(pod) else pod

    async def last_exit(self, workspace_id: str) -> Exit | None:
        await self.pods.ready()
        pod = self.pods.get(self._names.of(workspace_id))
        return judging.exit_of(pod) if pod else None

    async def left_over(self) -> set[str]:
        """Workspaces of which there is a pod."""
        await self.pods.ready()
        return {id_ for id_ in self.pods.workspaces() if ids.is_label(id_)}

    # --- starting

    async def runs_already(self, workload: Workload) -> bool:
        """Or is about to, and is waited for; what is left of an earlier one is removed."""
        name = self._names.of(workload.workspace_id)
        pod = await self._read(name)
        if pod is None:
            return False
        if judging.ide_has_ended(pod) or judging.is_leaving(pod):
            await self.remove(name)
            return False
        await self._give_key(pod)
        await self._wait_for_start(name)
        return True

    async def start(self, workload: Workload, entry: Entry, uid: int, allowed: Limits, in_place: InPlace) -> None:
        id_ = workload.workspace_id
        start = Start(entry.home, uid, self._asking.doors.new(), allowed)
        pod = await self._create(bodies.pod(workload, start, self._config, self._names))
        try:
            # From here on its pod holds the volume; whether that is still the home, only now can be told.
            if not await in_place(id_, entry):
                raise RuntimeFailureError("the workspace has no volume: it has just gone")  # noqa: TRY301
            await self._give_key(pod)
            await self._wait_for_start(self._names.of(id_))
        except asyncio.CancelledError:
            raise  # a start that is given up is stopped; one that is carried on finds its pod
        except BaseException:
            await asyncio.shield(self.remove(self._names.of(id_)))
            raise

    async def _create(self, body: Object) -> Object:
        try:
            made: Object = await self._api.call("POST", PODS, body)
        except ApiError as e:
            if e.answer == CONFLICT:
                raise RuntimeFailureError("another start of it is under way") from e
            if e.answer in {FORBIDDEN, UNPROCESSABLE}:
                raise StartFailedError(e.detail) from e
            raise
        self.pods.saw(made)
        return pruned(made)

    async def _give_key(self, pod: Object) -> None:
        """The pod waits for it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        labels = self._names.labels(_workspace(pod), _role(pod))
        pair = self._asking.doors.pair(pod["metadata"]["annotations"][names.DOOR])
        body = bodies.secret(name, uid, labels, pair)
        for _ in range(2):
            try:
                await self._api.call("POST", SECRETS, body)
            except ApiError as e:
                if e.answer != CONFLICT:
                    raise
                # Of this pod, most likely, given by one who was killed; or of an earlier one that is being removed.
                await self._api.call("DELETE", objects(SECRETS, name), missing=True)
            else:
                return
        raise RuntimeFailureError("another start of it is under way")

    async def _wait_for_start(self, name: str) -> None:
        """Until the IDE's container has begun, or has even ended, or the cluster says why it cannot."""
        await self.pods.ready()
        refused: dict[str, float] = {}

        def look(pod: Object | None) -> judging.Begun | None:
            begun = judging.begun(pod, self._config.kubernetes_pull_policy)
            if begun is not None and begun.refused and not begun.final:
                refused.setdefault(begun.refused, self._clock.monotonic())
                return None
            return begun

        waited = 0.0
        while waited < START_SECONDS:
            found = await self.pods.until(name, look, 1.0)
            if found is None:
                waited += 1.0
                await self.pods.ready()
                found = self._refused_for_long(name, refused)
            if found is None:
                continue
            if found.refused:
                raise (ImageNotFoundError if found.image else StartFailedError)(found.refused)
            return
        raise StartFailedError(f"its pod did not start: {judging.described(self.pods.get(name))}")

    def _refused_for_long(self, name: str, refused: Mapping[str, float]) -> "judging.Begun | None":
        begun = judging.begun(self.pods.get(name), self._config.kubernetes_pull_policy)
        first = min(refused.values(), default=self._clock.monotonic())
        is_over = begun is not None and begun.refused and self._clock.monotonic() - first >= REFUSED_SECONDS
        return begun if is_over else None

    # --- a home alone

    @contextlib.asynccontextmanager
    async def job(self, workspace_id: str, home: Home) -> AsyncIterator[Address]:
        """The door of a pod that has this home and nothing else; afterwards the pod is gone."""
        await self.pods.ready()
        await self.remove(home.name)  # of a coordinator that was killed
        body = bodies.job_pod(home, workspace_id, self._asking.doors.new(), self._config, self._names)
        pod = await self._create(body)
        try:
            await self._give_key(pod)
            await self._wait_for_start(home.name)
            yield _address(self.pods.get(home.name) or pod, door.ASK_PORT)
        finally:
            await asyncio.shield(asyncio.ensure_future(self.remove(home.name)))

    # --- ending

    async def stop(self, workspace_id: str, grace_seconds: float) -> None:
        """The pod stays, ended, and tells how it ended, until the next start or the end of its volume."""
        name = self._names.of(workspace_id)
        pod = await self._read(name)
        if pod is None or judging.has_ended(pod):
            return
        await self.pods.ready()
        asked = judging.runs(pod) and not judging.is_leaving(pod) and await self._ask_to_end(pod, grace_seconds)
        is_ending = asked or judging.ide_has_ended(pod)  # then the others in the pod end by themselves
        if is_ending and await self.pods.until(name, _ended_or_gone, ENDED_SECONDS):
            return
        await self.remove(name, grace_seconds)

    async def _ask_to_end(self, pod: Object, grace_seconds: float) -> bool:
        request = {"do": "stop", "grace": grace_seconds}
        seconds = grace_seconds + ENDED_SECONDS
        try:
            address = _address(pod, door.ASK_PORT)
            async with asyncio.timeout(seconds):
                async with self._asking.under_way(address, request, seconds=ANSWER_SECONDS * 5) as asked:
                    await asked.wait()
                    return bool(asked.outcome.get("ended"))
        except (RuntimeFailureError, TimeoutError, KeyError):
            return False

    async def remove(self, name: str, grace_seconds: float = 1.0) -> None:
        """Gone when this returns, and everything that ran in it: only the cluster can know."""
        pod = await self._read(name)
        if pod is None:
            return
        uid = pod["metadata"]["uid"]
        body = {"gracePeriodSeconds": max(1, math.ceil(grace_seconds)), "preconditions": {"uid": uid}}
        try:
            await self._api.call("DELETE", objects(PODS, name), body, missing=True)
        except ApiError as e:
            if e.answer != CONFLICT:
                raise
            return  # that one has gone, and there is another one
        await self._await_gone(name, uid, grace_seconds + GONE_SECONDS)

    async def _await_gone(self, name: str, uid: str, seconds: float) -> None:
        await self.pods.ready()

        def look(pod: Object | None) -> bool | None:
            return True if pod is None or pod["metadata"]["uid"] != uid else None

        if await self.pods.until(name, look, seconds):
            return
        pod = await self._read(name)
        if pod is not None and pod["metadata"]["uid"] == uid:
            raise RuntimeFailureError(judging.what_is_awaited(pod))
        self.pods.gone(name, uid)

    async def remove_all(self, workspace_id: str) -> None:
        """Its pod and those that work on its homes."""
        await self.pods.ready()
        for pod in self.pods.of(workspace_id):
            await self.remove(pod["metadata"]["name"])

    async def close(self) -> None:
        await self.pods.close()

    async def _read(self, name: str) -> Object | None:
        """As it is now: what the watch has may be a moment old."""
        found = await self._api.call("GET", objects(PODS, name), missing=True)
        if found is None:
            return None
        self.pods.saw(found)
        return pruned(found)

    async def _answers(self, address: Address, ready: str) -> bool:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await connect.status_of(address, ready, self._asking.doors) < 500
        except (OSError, ValueError, TimeoutError):
            return False


def ask_address(pod: Object) -> Address:
    return _address(pod, door.ASK_PORT)


def _address(pod: Object, port: int) -> Address:
    return Address(host=pod["status"]["podIP"], port=port, key=pod["metadata"]["annotations"][names.DOOR])


def _container(workspace_id: str, pod: Object) -> Container:
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).astimezone(UTC)
    return Container(workspace_id, pod["metadata"]["uid"], _address(pod, door.IDE_PORT), made)


def _role(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(names.ROLE))


def _workspace(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(names.WORKSPACE))


def _ended_or_gone(pod: Object | None) -> bool | None:
    return True if pod is None or judging.has_ended(pod) else None
