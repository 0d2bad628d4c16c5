"""What the product is handed in place of a machine: a runtime and an object store that only ask.

`driven` puts them, and an asyncio that never runs anything by itself, where the controller's modules look for theirs.
"""

import asyncio
import contextlib
import dataclasses
import functools
import hashlib
import types
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Sequence,
)
from datetime import datetime
from typing import Any
from unittest import mock

from codehub.archives import model as archive_model
from codehub.archives import service as archive_service
from codehub.archives.objects import Stored
from codehub.coordinator import setbacks, under_way
from codehub.reconciler import controller, homes
from codehub.reconciler.idle_recheck import Returned
from codehub.runtimes.base import (
    Address,
    Container,
    Exit,
    Found,
    RuntimeFailureError,
    Source,
    UnreadableError,
    Volume,
    Workload,
)
from codehub.templates.model import Template
from codehub.workspaces.admission import LineState
from codehub.workspaces.model import Workspace
from model.asks import Ask, BrokenError, ExpiredError
from model.database import NOW
from model.world import EMPTY, GARBAGE, HALF, ID, TORN

IDE = Template("t", "t", start_seconds=20)
CONTAINER = Container(ID, "1", Address(socket="s"), NOW)


class Clock:
    """Time stands still while a step is taken; that it passes is a transition of the model."""

    def now(self) -> datetime:
        return NOW

    def timestamp(self) -> float:
        return NOW.timestamp()

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, _seconds: float) -> None:
        await Ask("sleep")


class Templates:
    def find(self, _name: str) -> Template:
        return IDE

    require = find


class Line:
    """Nobody waits: the waiting room has a model of its own."""

    async def state(self, _c: object, _owner: str) -> LineState:
        return LineState(0, waiting=False, mine=None)


# --- the runtime


class Runtime:
    name = "model"
    node = "here"

    async def containers(self) -> Found[Container]:
        found = await Ask("containers")
        return Found({}, {ID: found}) if found == TORN else Found({ID: CONTAINER} if found else {})

    async def container(self, _id: str) -> Container | None:
        return dataclasses.replace(CONTAINER, answers=True) if await Ask("container") else None

    async def volumes(self, _ids: Collection[str]) -> Found[Volume]:
        found = await Ask("volumes")
        return Found({}, {ID: found}) if found == TORN else Found({} if found is None else {ID: Volume(ID, *found)})

    async def create_volume(self, _id: str, generation: str, _starter: Sequence[Any] = ()) -> None:
        await Ask("create_volume", generation)

    @contextlib.asynccontextmanager
    async def pack(self, _id: str, generation: str, _progress: Any) -> AsyncIterator["Packing"]:
        yield Packing(generation)

    async def unpack(self, _id: str, generation: str, chunks: AsyncGenerator[bytes, None], source: Source) -> None:
        """Aside, in pieces, and then in place as a whole, as every runtime does it."""
        staged = await Ask("staging", generation)
        try:
            async for chunk in chunks:
                await Ask("unpack", staged, chunk.decode())
            await Ask("place_volume", generation, staged, source.restored_from)
        except BaseException:
            with contextlib.suppress(RuntimeFailureError):
                await Ask("discard", staged)
            raise

    async def delete_volume(self, _id: str, generation: str) -> None:
        await Ask("delete_volume", generation)

    async def park_volume(self, _id: str, generation: str) -> None:
        await Ask("park_volume", generation)

    async def unpark_volume(self, _id: str, generation: str, made: str) -> None:
        await Ask("unpark_volume", generation, made)

    async def warm_up(self, _template: Template) -> None:
        pass

    async def start(self, _workload: Workload) -> None:
        await Ask("start")

    async def stop(self, _id: str, _grace_seconds: float) -> None:
        await Ask("stop")

    async def last_exit(self, _id: str) -> Exit | None:
        return Exit(1, "")


class Setbacks:
    """Time passes between two ticks: whatever was set aside is tried again. Only what cannot be read may be."""

    def __init__(self, *_args: Any) -> None: ...

    async def load(self, _c: Any) -> None: ...

    def waiting(self) -> list[str]:
        return []

    def has(self, _name: str) -> bool:
        return False

    async def note(self, _name: str, error: Exception) -> None:
        if not isinstance(error, UnreadableError):
            raise BrokenError(f"what nothing expects: {setbacks.describe(error)}")

    async def clear(self, _name: str) -> None: ...


class IdleRecheck:
    """Nobody came back since a timer's request."""

    async def recheck(self, _about_to_sleep: Sequence[Workspace]) -> Returned:
        return Returned()

    async def recheck_locked(self, _w: Workspace) -> Returned:
        return Returned()


# --- archives: the product's own, on objects and workers that only ask


def content(version: str) -> bytes:
    return version.encode()


@functools.cache
def version_of(digest: str) -> str:
    """Whose checksum this is."""
    known = [EMPTY, GARBAGE, HALF, *(f"v{n}" for n in range(1, 30))]
    return next(version for version in known if hashlib.sha256(content(version)).hexdigest() == digest)


@functools.cache
def _meta(version: str) -> bytes:
    sha256 = hashlib.sha256(content(version)).hexdigest()
    return archive_model.Meta(sha256, len(content(version)), 1, 1, NOW).to_json()


def _is_meta(key: str) -> bool:
    return key.endswith(archive_model.META_SUFFIX)


def _data_key(key: str) -> str:
    return key.removesuffix(archive_model.META_SUFFIX)


class Objects:
    async def list(self, prefix: str) -> AsyncIterator[Stored]:
        for key, data, meta in await Ask("list", prefix):
            if data:
                yield Stored(key, len(content(data)), NOW)
            if meta:
                yield Stored(archive_model.meta_key(key), len(_meta(meta)), NOW)

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        whole = b"".join([chunk async for chunk in chunks])
        await Ask("put_data", key, whole.decode())

    async def put(self, key: str, written: bytes) -> None:
        await Ask("put_meta", _data_key(key), version_of(archive_model.Meta.from_json(written).sha256))

    async def get(self, key: str) -> bytes:
        return _meta(await Ask("get_meta", _data_key(key)))

    def stream(self, key: str) -> "Stream":
        return Stream(key)

    async def delete(self, key: str) -> None:
        await Ask("delete_meta" if _is_meta(key) else "delete_data", _data_key(key))


class Stream:
    """One piece. No generator: one of those cannot be closed in the middle of a coroutine that is thrown away."""

    def __init__(self, key: str) -> None:
        self._left = [key]

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return content(await Ask("get_data", self._left.pop()))

    async def aclose(self) -> None: ...


class Packing:
    def __init__(self, generation: str) -> None:
        self._generation = generation

    async def output(self) -> AsyncIterator[bytes]:
        yield content(await Ask("pack", self._generation))

    async def result(self) -> dict[str, Any]:
        return {"bytes": 1, "files": 1, "left_out": []}


# --- asyncio


class Task:
    """Work that somebody was asked to do later. The machine runs it, and says when it is done."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.work = work
        self.error: BaseException | None = None
        self.callbacks: list[Callable[[Task], object]] = []

    def add_done_callback(self, callback: Callable[["Task"], object]) -> None:
        self.callbacks.append(callback)

    def cancelled(self) -> bool:
        return False

    def exception(self) -> BaseException | None:
        return self.error

    def end(self, error: BaseException | None) -> None:
        self.error = error
        for callback in self.callbacks:
            callback(self)


class Idle:
    """A task beside the work that never gets a turn: what reports progress once a second."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        work.close()

    def cancel(self) -> None: ...


async def _to_thread(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*args, **options)


async def _gather(*works: Any, return_exceptions: bool = False) -> list[Any]:  # noqa: ARG001 (as it is called)
    """One after the other."""
    waiting = [work for work in works if not isinstance(work, Idle)]
    done = []
    try:
        while waiting:
            done.append(await waiting.pop(0))
    finally:
        for work in waiting:
            work.close()
    return done


class Timeouts:
    """How many bounds on its time the code that runs is inside of."""

    inside = 0


@contextlib.asynccontextmanager
async def _timeout(_seconds: float) -> AsyncIterator[None]:
    Timeouts.inside += 1
    try:
        yield
    except ExpiredError:
        raise TimeoutError from None
    finally:
        Timeouts.inside -= 1


async def _shield(work: Awaitable[Any]) -> Any:
    return await work


STEPPED = types.SimpleNamespace(
    **{name: getattr(asyncio, name) for name in ("Semaphore", "Event", "CancelledError", "Task", "Future")},
    ensure_future=Task,
    create_task=Idle,
    to_thread=_to_thread,
    shield=_shield,
    gather=_gather,
    timeout=_timeout,
)


class Silent:
    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_args, **_values: None


class Ids:
    """The next id is whatever the machine says: it names those that nobody uses."""

    fresh = "o1"

    def new(self, _length: int = 12) -> str:
        return self.fresh


IDS = Ids()


@contextlib.contextmanager
def driven() -> Iterator[None]:
    """While this holds, the controller's modules act on the model, and only when they are stepped."""
    replaced: list[tuple[Any, str, Any]] = [
        (controller, "asyncio", STEPPED),
        (under_way, "asyncio", STEPPED),
        (under_way, "log", Silent()),
        (controller, "ids", IDS),
        (controller, "log", Silent()),
        (controller, "Setbacks", Setbacks),
        (controller, "random", types.SimpleNamespace(random=lambda: 0.0)),
        (homes, "asyncio", STEPPED),
        (archive_service, "asyncio", STEPPED),
    ]
    with contextlib.ExitStack() as stack:
        for module, name, double in replaced:
            stack.enter_context(mock.patch.object(module, name, double))
        yield
