"""The first stage of the three: what a proxy saw, in memory, until it is flushed to Redis.

`recorder` writes into it for every request and message: dictionary writes, nothing else. A flush that fails puts back
what it took, the newest of each workspace, so that memory is bounded by workspaces, not by time. What is done in a
workspace that is about to sleep cannot wait for a flush: it watched.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

import msgspec

from codehub.activity import keys, scripts
from codehub.activity.model import Kind
from codehub.db.redis import Client

CHUNK = 1_000  # workspaces per command: each takes Redis a few milliseconds
RESENT = 300.0  # what was flushed so recently is sent again to a Redis that has lost its memory
SAME_LISTING = 60.0
KINDS = len(Kind)
LABELS = tuple(kind.label for kind in Kind)


def milliseconds(at: datetime) -> int:
    """Rounded up: no workspace was idle any earlier than this."""
    return _milliseconds(at.timestamp())


def _milliseconds(seconds: float) -> int:
    return math.ceil(seconds * 1000)


def _name(folder: bytes) -> str:
    """Short, and text: Redis's own msgpack knows no bytes. A hash, as the names of a person's folders are private."""
    return hashlib.blake2b(folder, digest_size=8).hexdigest()


class Tally:
    """What was seen of one workspace since the last flush. Times are seconds since 1970; 0: never."""

    __slots__ = ("counts", "input", "output")

    def __init__(self) -> None:
        self.counts = [0] * KINDS
        self.input = 0.0
        self.output = 0.0

    @property
    def newest(self) -> float:
        return max(self.input, self.output)

    def add(self, other: "Tally") -> None:
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.input = max(self.input, other.input)
        self.output = max(self.output, other.output)


def _that_flushes(name: str) -> Any:
    slot = vars(Tally)[name]

    def note(tally: "ImmediateFlush", at: float) -> None:
        slot.__set__(tally, at)
        if at:
            tally.request_flush()

    return property(slot.__get__, note)


class ImmediateFlush(Tally):
    """Of a workspace that is about to sleep. Only these pay for it: the writer does not ask which kind it is."""

    __slots__ = ("request_flush",)
    input = _that_flushes("input")
    output = _that_flushes("output")

    def __init__(self, request_flush: Callable[[], None]) -> None:
        self.request_flush = request_flush
        super().__init__()


Listing = tuple[str, bytes]  # workspace and folder
Span = tuple[float, float]  # asked for first and last


class Buffer:
    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self.flush_requested = asyncio.Event()  # something was done in a workspace that is about to sleep
        self._watched: set[str] = set()
        self._listings: dict[Listing, Span] = {}  # since the last flush
        self._asked: dict[Listing, float] = {}  # asked for last, before
        self._sent: dict[str, float] = {}

    def tally(self, workspace_id: str) -> Tally:
        found = self.tallies.get(workspace_id)
        if found is None:
            watched = workspace_id in self._watched
            found = ImmediateFlush(lambda: self._request_flush(workspace_id)) if watched else Tally()
            self.tallies[workspace_id] = found
        return found

    def watch(self, workspace_ids: Collection[str]) -> None:
        """In each of these, the first that is done after the next flush is flushed at once."""
        self._watched = set(workspace_ids)

    def _request_flush(self, workspace_id: str) -> None:
        self._watched.discard(workspace_id)
        self.flush_requested.set()

    def note_listing(self, workspace_id: str, folder: bytes, now: float) -> None:
        """Whether it is a person's or a refresh is said at the flush: another proxy may have seen it before."""
        listing = (workspace_id, folder)
        since = self._listings.get(listing)
        if since is not None and now - since[1] <= SAME_LISTING:
            self._listings[listing] = (since[0], now)
            self.tally(workspace_id).counts[Kind.REFRESH] += 1
            return
        before = self._asked.get(listing)
        if before is not None and now - before <= SAME_LISTING:
            self._asked[listing] = now
            self.tally(workspace_id).counts[Kind.REFRESH] += 1
        else:
            self.tally(workspace_id)
            self._listings[listing] = (now, now)
            if workspace_id in self._watched:
                self._request_flush(workspace_id)

    async def flush(self, client: Client, now: float) -> int:
        """Everything noted so far into Redis; how many workspaces. Raises, and keeps it, when Redis does not answer."""
        tallies, self.tallies = self.tallies, {}
        listings, self._listings = self._listings, {}
        active = {id_: tally.newest for id_, tally in tallies.items() if tally.newest}
        try:
            await self._write(client, active)
            await self._explain(client, tallies, listings, self._refreshed(now))
        except BaseException:
            self._put_back(tallies, listings)
            raise
        self._asked.update({listing: last for listing, (_, last) in listings.items()})
        self._sent = {id_: at for id_, at in self._sent.items() if now - at < RESENT} | active
        return len(tallies)

    def _refreshed(self, now: float) -> dict[Listing, float]:
        """Listings that are refreshed here: other proxies have to know. Old ones are forgotten."""
        self._asked = {listing: at for listing, at in self._asked.items() if now - at <= SAME_LISTING}
        return self._asked

    async def _write(self, client: Client, active: dict[str, float]) -> None:
        scores = [(id_, _milliseconds(at)) for id_, at in active.items()]
        async with client.pipeline(transaction=False) as pipe:
            for begin in range(0, len(scores), CHUNK):
                pipe.zadd(scripts.place(client) + keys.ACTIVITY, dict(scores[begin : begin + CHUNK]), gt=True)
            await pipe.execute()

    async def _explain(
        self,
        client: Client,
        tallies: dict[str, Tally],
        listings: dict[Listing, Span],
        refreshed: dict[Listing, float],
    ) -> None:
        by_workspace: dict[str, list[tuple[str, int, int]]] = {}
        for (id_, folder), last in refreshed.items():
            by_workspace.setdefault(id_, []).append((_name(folder), 0, _milliseconds(last)))
        for (id_, folder), (first, last) in listings.items():
            by_workspace.setdefault(id_, []).append((_name(folder), _milliseconds(first), _milliseconds(last)))
        entries = [
            (
                id_,
                _milliseconds(tally.input),
                _milliseconds(tally.output),
                {label: count for label, count in zip(LABELS, tally.counts, strict=True) if count},
                by_workspace.get(id_, []),
            )
            for id_, tally in tallies.items()
        ]
        within = int(SAME_LISTING * 1000)
        for begin in range(0, len(entries), CHUNK):
            packed = msgspec.msgpack.encode(entries[begin : begin + CHUNK])
            await scripts.run(client, "note", packed, keys.DETAILS_SECONDS, within)

    def _put_back(self, tallies: dict[str, Tally], listings: dict[Listing, Span]) -> None:
        for id_, later in self.tallies.items():
            tallies.setdefault(id_, Tally()).add(later)
        self.tallies = tallies
        for listing, (first, last) in self._listings.items():
            listings[listing] = (listings.get(listing, (first, last))[0], last)
        self._listings = listings

    def send_again(self) -> None:
        """Redis has lost its memory: what it was told lately has to be told again."""
        for id_, at in self._sent.items():
            tally = self.tally(id_)
            tally.input = max(tally.input, at)
        self._sent = {}
