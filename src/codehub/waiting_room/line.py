"""The line in Redis: who waits, in which order, who is heard of, and the clock of an offer.

Called by `service`, `pump` and, in proxy workers, by `front_door`. Every step is one script, atomic, in one round trip;
polls that come at the same time share one. Offers are PostgreSQL's: here they are only shown, and their time runs.
`LOSS` says that Redis is empty or another one than it was: `pump` opens a new epoch, and people return at the sequence
that is in their tokens. An epoch is opened once; where `open` refuses, the next one has to be begun.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client
from codehub.errors import UnavailableError
from codehub.settings import QueueConfig
from codehub.waiting_room import answers, keys
from codehub.waiting_room.batch import Batcher
from codehub.waiting_room.model import (
    EXPIRED,
    LOSS,
    Check,
    Expired,
    Joined,
    LineCounts,
    LogEntry,
    Loss,
    Marked,
    Member,
    Pick,
    Standing,
    Swept,
    Why,
)
from codehub.waiting_room.scripts import Scripts, milliseconds

log = logs.get()
Poll = tuple[str, int]  # pid, sequence
Polled = Standing | Check | Expired | Loss
LOG_PART = 500  # entries of a log that one call reads: a few milliseconds of Redis's time
TOLD = (Why.ENTERED, Why.LEFT)  # what a personal stream says, beside ready and expired


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()


class Line:
    def __init__(self, client: Client, clock: Clock, config: QueueConfig) -> None:
        self._client = client
        self._clock = clock
        self._config = config
        self._scripts = Scripts(config)
        self._polls: Batcher[str, Poll, Polled] = Batcher(self._poll)
        self._burials: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        await self._polls.aclose()
        for task in self._burials:
            task.cancel()
        await asyncio.gather(*self._burials, return_exceptions=True)

    # What waiting people ask for.

    async def join(self, event: str, pid: str, name: str, number: int | None) -> Joined | Loss:
        """The place that this person has, or one at the end; `number`: their draw, while a lottery has not opened."""
        own = keys.heartbeat(event, pid), keys.waiting(event, pid)
        drawn = "" if number is None else number
        answer = await self._run("join", event, own, pid, _json(name), drawn)
        if answer is None:
            return LOSS
        seq, new, text, expired = answer
        self._bury_later(event, expired)
        return answers.joined(seq, text, new=bool(new))

    async def status(self, event: str, pid: str, seq: int) -> Polled:
        """Hears of this person, and says where they stand."""
        try:
            return await self.poll(event, pid, seq)
        except FAILURES as e:
            raise _away(e) from e

    def poll(self, event: str, pid: str, seq: int) -> "asyncio.Future[Polled]":
        """As `status`, for callers that wait without a task; what goes wrong is Redis's own exception."""
        return self._polls.ask(event, (pid, seq))

    async def peek(self, event: str, pid: str, seq: int, *, act: bool = False) -> Standing | Loss | None:
        """Where this person stands, without hearing of them; None: not in line. An act ends being passed over."""
        answer = await self._run("peek", event, (), pid, seq, int(act))
        if answer is None or not answer:
            return LOSS if answer is None else None
        head, numbers, _, expired = answer
        self._bury_later(event, expired)
        return answers.peeked(answers.Head(*head), numbers)

    async def confirm(
        self, event: str, pid: str, seq: int, *, expected: int, name: str, joined_ms: int, offered: bool = False
    ) -> bool | Loss:
        """PostgreSQL has nothing against it: the sequence of this token counts. False: the line has changed since.

        `offered`: it has a place for it, so that it counts also when it is too late to return otherwise.
        """
        own = keys.heartbeat(event, pid), keys.waiting(event, pid)
        answer = await self._run("confirm", event, own, pid, seq, expected, _json(name), joined_ms, int(offered))
        return LOSS if answer is None else bool(answer)

    async def drop(self, event: str, pid: str, seq: int, why: Why, *, name: str | None = None) -> bool | Loss:
        """Takes this person out of the line, up to this sequence; was there one? With a name, their stream says so."""
        own = [keys.heartbeat(event, pid), keys.waiting(event, pid)]
        if name is not None and why in TOLD:
            own.append(keys.personal(event, name))
        answer = await self._run("drop", event, own, pid, seq, why)
        if answer is None:
            return LOSS
        found, expired = answer
        self._bury_later(event, expired)
        return bool(found)

    # What the pump does.

    async def mark(self, event: str, pid: str, seq: int, offer_id: int, epoch: int) -> Marked | Loss:
        """Shows an offer to its person."""
        answer = await self._run("mark", event, (keys.waiting(event, pid),), pid, seq, offer_id, epoch)
        if answer is None:
            return LOSS
        if len(answer) > 1 and answer[1]:
            await self._tell(event, [(answers.name(answer[1]), "ready", seq)])
        return Marked(answer[0].decode())

    async def sweep(self, event: str, limit: int) -> Swept | Loss:
        """Silence, expiry, overdue offers, each up to a limit. Every overdue offer has to end in `lapse` or `drop`."""
        answer = await self._run("sweep", event, (), limit)
        if answer is None:
            return LOSS
        swept = answers.swept(*answer)
        await self._bury(event, swept.expired)
        return swept

    async def lapse(self, event: str, pid: str, offer_id: int) -> Loss | None:
        """PostgreSQL has lapsed this offer, or knows nothing of it."""
        return LOSS if await self._run("lapse", event, (), pid, offer_id) is None else None

    async def first(self, event: str, k: int) -> list[Pick] | Loss:
        """Who is next; none during a hold or a pause, and before a lottery opens."""
        answer = await self._run("first", event, (), k)
        return LOSS if answer is None else answers.picks(answer)

    async def open(self, event: str, epoch: int, hold_seconds: float, window_seconds: float, *, lottery: bool) -> bool:
        """Begins an epoch that PostgreSQL has counted; False: this or a later one was begun before.

        The hold is that of an emptied line; for one that has survived it is ten seconds at most.
        """
        hold, window = milliseconds(hold_seconds), milliseconds(window_seconds)
        return bool(await self._run("open", event, (), epoch, hold, window, int(lottery)))

    async def configure(
        self, event: str, *, paused: bool, lottery: bool, eta: str, opens_ms: int | None = None
    ) -> Loss | None:
        """`lottery`: the order is drawn, and the event has not opened yet."""
        told = int(paused), int(lottery), eta, opens_ms or 0
        return LOSS if await self._run("configure", event, (), *told) is None else None

    # What is shown.

    async def forecast(self, event: str) -> str:
        """As `configure` was told last; empty: nothing yet."""
        try:
            text = cast("bytes | None", await self._client.hget(keys.meta(event), "eta"))
        except FAILURES as e:
            raise _away(e) from e
        return text.decode() if text else ""

    async def counts(self, event: str) -> LineCounts | Loss:
        answer = await self._run("counts", event, ())
        return LOSS if answer is None else answers.counts(answer)

    async def log_since(self, event: str, after: int) -> list[LogEntry] | Loss | None:
        """Why positions moved since entry `after` (below 0: all that is kept); None: some of it is no longer kept.

        In parts: Redis answers nothing else meanwhile.
        """
        found: list[LogEntry] = []
        while True:
            answer = await self._run("log", event, (), after, LOG_PART)
            if answer is None:
                return LOSS
            missing, part = answer
            if missing:
                return None
            found += answers.entries(part)
            if len(part) < LOG_PART:
                return found
            after = found[-1].number

    async def page(self, event: str, start: int, limit: int) -> list[Member] | Loss:
        """A part of the line, in order."""
        answer = await self._run("page", event, (), start, limit)
        if answer is None or not answer:
            return LOSS if answer is None else []
        try:
            texts = await self._client.mget([keys.waiting(event, pick.pid) for pick in answers.picks(answer[0])])
        except FAILURES as e:
            raise _away(e) from e
        return answers.members(start, answer, texts)

    async def names(self, event: str, pids: Sequence[str]) -> dict[str, str]:
        """Of these people, those whose names are known."""
        try:
            texts: list[Any] = await self._client.mget([keys.waiting(event, pid) for pid in pids]) if pids else []
        except FAILURES as e:
            raise _away(e) from e
        return {pid: answers.name(text) for pid, text in zip(pids, texts, strict=True) if text}

    # How.

    def _now(self) -> int:
        return int(self._clock.timestamp() * 1000)

    async def _run(self, name: str, event: str, own: Sequence[str], *arguments: str | int) -> Any:
        """What a script answers; None for a loss."""
        try:
            answer = await self._scripts.run(
                self._client, name, (*keys.of_event(event), *own), (self._now(), *arguments)
            )
        except FAILURES as e:
            raise _away(e) from e
        return None if answer == b"LOSS" else answer

    async def _poll(self, event: str, polls: Sequence[Poll]) -> Sequence[Polled]:
        names = list(keys.of_event(event))
        for pid, _ in polls:
            names += (f"heartbeat:{{{event}}}.{pid}", f"queue:waiting:{{{event}}}.{pid}")
        asked = " ".join([f"{pid} {seq}" for pid, seq in polls])
        answer = await self._scripts.run(self._client, "status", names, (self._now(), asked))
        metrics.QUEUE_POLLS.inc(len(polls))
        if answer == b"LOSS":
            return [LOSS] * len(polls)
        head, flat, others, expired = answer
        self._bury_later(event, expired)
        given = answers.polled(answers.Head(*head), flat)
        for i in range(0, len(others), 3):
            number, seq, text = others[i : i + 3]
            standing = given[number - 1]
            if isinstance(standing, Standing) and text:
                given[number - 1] = standing._replace(stands=answers.joined(seq, text, new=False))
        if log.is_enabled_for(logging.DEBUG):
            self._say_renewed(event, polls, given)
        return given

    def _say_renewed(self, event: str, polls: Sequence[Poll], given: Sequence[Polled]) -> None:
        for (pid, _), answer in zip(polls, given, strict=True):
            if answer is not EXPIRED:
                ttl = f"{self._config.heartbeat_seconds}s"
                log.debug("Heartbeat renewed", waiting_token=f"{event}.{pid}", ttl_remaining=ttl)

    def _bury_later(self, event: str, flat: Sequence[Any]) -> None:
        """Those whom a request has found expired, beside the request."""
        if flat:
            task = asyncio.create_task(self._bury_quietly(event, answers.picks(flat)))
            self._burials.add(task)
            task.add_done_callback(self._burials.discard)

    async def _bury_quietly(self, event: str, expired: Sequence[Pick]) -> None:
        try:
            await self._bury(event, expired)
        except UnavailableError as e:  # their keys end by themselves, a little later
            log.warning("Keys of expired waiting people were not removed", event_id=event, error=e.detail)

    async def _bury(self, event: str, expired: Sequence[Pick]) -> None:
        """What the expired had under keys of their own goes, and their streams say why."""
        if not expired:
            return
        metrics.QUEUE_EXPIRED.inc(len(expired))
        own = [key for pid, _ in expired for key in (keys.heartbeat(event, pid), keys.waiting(event, pid))]
        try:
            texts = await self._scripts.run(
                self._client, "bury", [keys.event(event), *own], [pick.pid for pick in expired]
            )
        except FAILURES as e:
            raise _away(e) from e
        news = []
        for pick, text in zip(expired, texts, strict=True):
            name = answers.name(text) if text else None
            log.info(
                "Heartbeat expired - cleaning up abandoned user",
                waiting_token=f"{event}.{pick.pid}",
                event_id=event,
                user_id=name,
            )
            if name is not None:
                news.append((name, "expired", pick.seq))
        await self._tell(event, news)

    async def _tell(self, event: str, news: Sequence[tuple[str, str, int]]) -> None:
        """Entries in personal streams: name, kind, sequence."""
        if not news:
            return
        streams = [keys.personal(event, name) for name, _, _ in news]
        said = [word for _, kind, seq in news for word in (kind, seq)]
        try:
            await self._scripts.run(self._client, "tell", streams, [self._config.event_seconds, *said])
        except FAILURES as e:
            raise _away(e) from e


def _away(e: Exception) -> UnavailableError:
    log.warning("The line does not answer: Redis is away", error=str(e) or type(e).__name__)
    return UnavailableError("The waiting room does not answer right now; your place is kept. Try again.", retry_after=2)
