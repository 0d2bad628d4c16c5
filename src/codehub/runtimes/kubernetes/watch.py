"""What the cluster has of ours, by kind: listed once, then watched. Used by `lifecycle` and `volumes`.

A watch is resumed where it broke, and the list is asked for again only when the API has forgotten that place. What we
have written ourselves is here at once, so that nobody looks at what was before. While the API is away nothing is
forgotten: after a moment, looking fails instead.
"""

import asyncio
import contextlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from codehub import logs
from codehub.clock import Clock
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.kubernetes.api import Api, ApiError, ApiUnreachableError, Object
from codehub.runtimes.kubernetes.names import WORKSPACE

T = TypeVar("T")
Change = Callable[[Object | None, Object | None], None]  # before and after; None: there was none, there is none
log = logs.get()
FIRST_SECONDS = 30.0  # for the first list
AWAY_SECONDS = 5.0  # without a watch: then what is known is no answer any more
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
PAGE = "500"
FORGOTTEN = 410
KEPT = ("name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
OF_STATUS = ("phase", "reason", "message", "podIP")
OF_A_CONDITION = ("type", "status", "reason", "message")
OF_A_CONTAINER = ("name", "image", "state")


def pruned(found: Mapping[str, Any]) -> Object:
    """What anybody here asks of it: of thousands of pods the rest would fill the memory."""
    about = found["metadata"]
    named = {kind: _shared(about[kind]) for kind in ("labels", "annotations") if about.get(kind)}
    kept: Object = {"metadata": _part(about, KEPT) | named}
    kept["spec"] = {"nodeName": sys.intern((found.get("spec") or {}).get("nodeName", ""))}
    if found.get("status"):
        kept["status"] = _status(found["status"])
    return kept | _part(found, ("data",))


def _status(status: Mapping[str, Any]) -> Object:
    kept = _part(status, OF_STATUS)
    if refused := [one for one in status.get("conditions") or [] if one.get("status") == "False"]:
        kept["conditions"] = [_part(one, OF_A_CONDITION) for one in refused]
    for kind in ("initContainerStatuses", "containerStatuses"):
        if status.get(kind):
            kept[kind] = [_part(one, OF_A_CONTAINER) for one in status[kind]]
    return kept


def _part(whole: Mapping[str, Any], names: Iterable[str]) -> Object:
    return {name: whole[name] for name in names if whole.get(name)}


def _shared(texts: Mapping[str, str]) -> dict[str, str]:
    """Each event has its own copy of words that all have."""
    return {sys.intern(name): sys.intern(text) for name, text in texts.items()}


def workspace_of(found: Mapping[str, Any]) -> str:
    return str((found["metadata"].get("labels") or {}).get(WORKSPACE, ""))


def version(found: Mapping[str, Any]) -> int:
    return int(found["metadata"]["resourceVersion"])


class Table:
    """All of one kind. Pure but for `_run`: events go in by `take`. What changes is told at once, one by one."""

    def __init__(
        self, api: Api, plural: str, selector: str, clock: Clock, changed: Change = lambda _before, _after: None
    ) -> None:
        self._api = api
        self._changed = changed
        self.plural = plural
        self._selector = selector
        self._clock = clock
        self._objects: dict[str, Object] = {}
        self._by_workspace: dict[str, set[str]] = {}  # names
        self._gone: dict[str, None] = {}  # by uid: deleted by us, and the watch has not said so yet
        self._version: str | None = None  # where to watch from; None: to be listed
        self._listed = asyncio.Event()
        self._trouble: tuple[float, RuntimeFailureError] | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    # --- asking

    async def ready(self) -> None:
        """Raises when the API is away. Begins to watch, unless it does."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"watch of {self.plural}")
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                while not self._listed.is_set():
                    self._require_no_trouble(0)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._listed.wait(), SHORTEST_PAUSE)
        except TimeoutError:
            raise ApiUnreachableError(f"the cluster's API does not list its {self.plural}") from None
        self._require_no_trouble(AWAY_SECONDS)

    def get(self, name: str) -> Object | None:
        return self._objects.get(name)

    def of(self, workspace_id: str) -> list[Object]:
        return [self._objects[name] for name in self._by_workspace.get(workspace_id, ())]

    def workspaces(self) -> Iterable[str]:
        return self._by_workspace.keys()

    def all(self) -> Iterable[Object]:
        return self._objects.values()

    async def until(self, name: str, look: Callable[[Object | None], T | None], seconds: float) -> T | None:
        """What `look` finds of this one, as soon as it finds anything; None: not in this time."""
        changed = asyncio.Event()
        self._waiting[name].add(changed)
        try:
            async with asyncio.timeout(seconds):
                while (found := look(self.get(name))) is None:
                    await changed.wait()
                    changed.clear()
                return found
        except TimeoutError:
            return None
        finally:
            self._waiting[name].discard(changed)
            if not self._waiting[name]:
                del self._waiting[name]

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            self._version = None  # who looks again later, lists anew
            self._listed.clear()

    # --- hearing

    def saw(self, found: Mapping[str, Any]) -> None:
        """As the API answered us, or told: unless something newer is known."""
        uid, name = found["metadata"]["uid"], found["metadata"]["name"]
        known = self._objects.get(name)
        if uid in self._gone or (known and version(known) > version(found)):
            return
        self._objects[name] = seen = pruned(found)
        self._by_workspace.setdefault(workspace_of(found), set()).add(name)
        self._changed(known, seen)
        self._tell(name)

    def gone(self, name: str, uid: str, *, told: bool = False) -> None:
        """`told` by the watch, which says nothing of it after that."""
        if told:
            self._gone.pop(uid, None)
        elif self._task:
            self._gone[uid] = None
        known = self._objects.get(name)
        if known and known["metadata"]["uid"] == uid:
            self._forget(name, workspace_of(self._objects.pop(name)))
            self._changed(known, None)

    def _forget(self, name: str, workspace_id: str) -> None:
        its = self._by_workspace[workspace_id]
        its.discard(name)
        if not its:
            del self._by_workspace[workspace_id]
        self._tell(name)

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the watch."""
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(int(found.get("code", 0)), str(found.get("reason")), str(found.get("message")))
        self._version = found["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self.gone(found["metadata"]["name"], found["metadata"]["uid"], told=True)
        elif kind != "BOOKMARK":
            self.saw(found)

    def replace(self, listed: Iterable[Mapping[str, Any]], listed_at: str) -> None:
        """All that there was at that version; what we have written since is newer."""
        found = {one["metadata"]["name"]: one for one in listed}
        uids = {one["metadata"]["uid"] for one in found.values()}
        self._gone = {uid: None for uid in self._gone if uid in uids}
        for name, known in list(self._objects.items()):
            if name not in found and version(known) <= int(listed_at):
                self.gone(name, known["metadata"]["uid"], told=True)
        for one in found.values():
            self.saw(one)
        self._version = listed_at
        self._listed.set()

    # --- watching

    async def _run(self) -> None:
        pause = SHORTEST_PAUSE
        while True:
            try:
                if self._version is None:
                    self.replace(*await self._list())
                since = {"labelSelector": self._selector, "resourceVersion": self._version or ""}
                async with contextlib.aclosing(self._api.watch(self.plural, **since)) as events:
                    async for event in events:
                        self._trouble, pause = None, SHORTEST_PAUSE
                        if event:
                            self.take(event)
                continue  # it has an end, and goes on where it ended
            except ApiError as e:
                if e.answer == FORGOTTEN:
                    log.info("The cluster has forgotten where we watched, listing anew", kind=self.plural)
                    self._version = None
                    continue
                self._failed(e)
            except RuntimeFailureError as e:
                self._failed(e)
            except Exception as e:  # whatever an event has in it, the watch goes on with a new list
                log.warning("A watch failed", kind=self.plural, exc_info=e)
                self._failed(ApiUnreachableError(f"the cluster's {self.plural} cannot be watched: {e}"))
                self._version = None
            await self._clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _list(self) -> tuple[list[Object], str]:
        found: list[Object] = []
        more: dict[str, Any] = {}
        while True:
            page = await self._api.call("GET", self.plural, labelSelector=self._selector, limit=PAGE, **more)
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, page["metadata"]["resourceVersion"]
            more = {"continue": page["metadata"]["continue"]}

    def _failed(self, error: RuntimeFailureError) -> None:
        since = self._trouble[0] if self._trouble else self._clock.monotonic()
        self._trouble = since, error

    def _require_no_trouble(self, seconds: float) -> None:
        if self._trouble and self._clock.monotonic() - self._trouble[0] >= seconds:
            raise self._trouble[1]

    def _tell(self, name: str) -> None:
        for waiting in self._waiting.get(name, ()):
            waiting.set()
