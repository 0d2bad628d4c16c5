"""Who is told what: audiences, memberships that move, slow readers, resuming, failures. On a real database."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack

import pytest

from codehub.db import Connection, Database, Listener
from codehub.events import outbox
from codehub.events.hub import Hub, Kind
from codehub.events.model import CHANNEL, Event
from codehub.events.subscription import BUFFERED_AT_MOST, Subscription
from tests.virtual_time import ManualClock

NOTHING = 0.0


class Rendered:
    """A capability that renders its events; one subject of it cannot be."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []

    async def render(self, c: Connection, subjects: Collection[str]) -> Mapping[str, tuple[str, str]]:
        self.asked.append(set(subjects))
        if "broken" in subjects:
            await c.fetchval("SELECT 1 / 0")
        return {s: ("seen", f'{{"s":"{s}"}}') for s in subjects if s != "gone"}


class Place:
    """A hub that reads when the test says."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.rendered = Rendered()
        self.members: set[str] = set()
        kinds = {
            "drawn": Kind(self.rendered.render),
            "joined": Kind(joins="room"),
            "left": Kind(leaves="room"),
        }
        self.hub = Hub(database, clock, kinds)
        self.opened = AsyncExitStack()

    async def memberships(self, _c: Connection) -> Collection[str]:
        return set(self.members)

    async def open(self, *audiences: str, cursor: int | None = -1) -> Subscription:
        at = await self.hub.now() if cursor == -1 else cursor
        return await self.opened.enter_async_context(self.hub.subscribed(audiences, self.memberships, at))

    async def write(self, *events: Event) -> None:
        async with self.database.transaction() as c:
            await outbox.write(c, self.clock.now(), events)

    async def say(self, audience: str, *subjects: str, kind: str = "said") -> None:
        await self.write(*(Event(audience, kind, subject, {"s": subject}) for subject in subjects))

    async def told(self, audience: str, *subjects: str, kind: str = "said") -> None:
        await self.say(audience, *subjects, kind=kind)
        await self.hub.read_all()


@pytest.fixture
async def place(database: Database, clock: ManualClock) -> AsyncIterator[Place]:
    made = Place(database, clock)
    yield made
    await made.opened.aclose()


async def got(subscription: Subscription) -> list[str]:
    """What waits for it: subjects, or `reset`."""
    text = (await subscription.next(NOTHING) or b"").decode()
    lines = text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [line.split('"')[3] if '"' in line else "" for line in lines if line.startswith("data: ")]
    return [d or name for name, d in zip(names, data, strict=True) if name != "heartbeat"]


async def test_only_those_who_listen_to_its_audience_are_told(place: Place) -> None:
    mina, jun, admin = (
        await place.open("user:mina", "class:3"),
        await place.open("user:jun"),
        await place.open("user:*"),
    )
    await place.told("user:mina", "a")
    await place.told("class:3", "b")
    await place.told("user:jun", "c")
    assert (await got(mina), await got(jun), await got(admin)) == (["a", "b"], ["c"], ["a", "c"])


async def test_what_comes_while_a_reader_is_being_sent_to_is_not_lost(place: Place) -> None:
    mina = await place.open("user:mina")
    await place.told("user:mina", "1")
    sending = await got(mina)  # and while that is on its way
    await place.told("user:mina", "2")
    sending += await got(mina)
    await place.told("user:mina", "3")
    await place.told("user:mina", "4")
    assert sending + await got(mina) == ["1", "2", "3", "4"]


async def test_an_event_wakes_its_reader(place: Place) -> None:
    mina = await place.open("user:mina")
    waiting = asyncio.create_task(mina.next(60))
    await asyncio.sleep(0)
    await place.told("user:mina", "1")
    assert b'"1"' in (await asyncio.wait_for(waiting, 5) or b"")


async def test_memberships_that_change_move_the_subscription_in_the_order_of_events(place: Place) -> None:
    place.members = {"room:old"}
    mina = await place.open("user:mina")
    await place.told("room:old", "hello")
    await place.write(
        Event("room:new", "said", "n", {"s": "too early"}),
        Event("user:mina", "joined", "new", {"s": "in"}),
        Event("room:new", "said", "n", {"s": "welcome"}),
        Event("user:mina", "left", "old", {"s": "out"}),
        Event("room:old", "said", "o", {"s": "too late"}),
    )
    await place.hub.read_all()
    assert await got(mina) == ["hello", "in", "welcome", "out"]


async def test_a_membership_that_changes_while_a_stream_opens_does_not_slip_through(place: Place) -> None:
    """It is read as it was before; the change is committed and handed over before the opening goes on."""

    async def slowly(_c: Connection) -> Collection[str]:
        await place.told("user:mina", "new", kind="joined")
        await place.told("user:mina", "old", kind="left")
        return {"room:old"}

    cursor = await place.hub.now()
    mina = await place.opened.enter_async_context(place.hub.subscribed(["user:mina"], slowly, cursor))
    assert await got(mina) == ["new", "old"]  # from the table: it had not begun when they were handed over
    await place.told("room:old", "secret")
    await place.told("room:new", "welcome")
    assert await got(mina) == ["welcome"]


async def test_what_was_said_between_a_cursor_and_the_opening_comes_first(place: Place) -> None:
    cursor = await place.hub.now()
    await place.told("user:mina", "1", "2")
    await place.say("user:mina", "3")  # committed, and not read yet
    mina = await place.open("user:mina", cursor=cursor)
    await place.hub.read_all()
    assert await got(mina) == ["1", "2", "3"]


async def test_a_cursor_from_a_process_that_is_ahead_repeats_nothing(place: Place) -> None:
    await place.hub.now()
    await place.say("user:mina", "1", "2")
    async with place.database.connection() as c:
        ahead = await outbox.newest(c)
    mina = await place.open("user:mina", cursor=ahead)
    await place.told("user:mina", "3")
    assert await got(mina) == ["3"]


@pytest.mark.parametrize("cursor", [None, 0, 2**62])
async def test_a_cursor_that_is_not_ours_or_from_before_what_is_kept_gets_a_reset(
    place: Place, cursor: int | None
) -> None:
    await place.told("user:mina", "1")
    mina = await place.open("user:mina", cursor=cursor)
    assert await got(mina) == ["reset"]
    await place.told("user:mina", "2")
    assert await got(mina) == ["2"]


async def test_a_reader_that_is_too_slow_is_reset_and_goes_on_from_there(place: Place) -> None:
    mina = await place.open("user:mina")
    await place.told("user:mina", *(str(n) for n in range(BUFFERED_AT_MOST)))
    await place.told("user:mina", "too much")
    await place.told("user:mina", "still not read")
    assert await got(mina) == ["reset"]
    await place.told("user:mina", "next")
    assert await got(mina) == ["next"]


async def test_a_resume_that_would_be_long_is_a_reset(place: Place) -> None:
    cursor = await place.hub.now()
    await place.told("user:mina", *(str(n) for n in range(outbox.MISSED_AT_MOST + 1)))
    assert await got(await place.open("user:mina", cursor=cursor)) == ["reset"]


async def test_events_removed_before_this_process_read_them_reset_its_streams(place: Place) -> None:
    mina = await place.open("user:mina")
    await place.say("user:mina", "1")
    await place.clock.advance(60)
    async with place.database.connection() as c:
        await outbox.prune(c, place.clock.now(), 10)
    await place.hub.read_all()
    assert await got(mina) == ["reset"]


async def test_an_event_is_rendered_once_for_all_and_not_at_all_where_nobody_listens(place: Place) -> None:
    both = await place.open("room:a"), await place.open("room:a")
    await place.say("room:a", "a", "a", "gone", kind="drawn")  # said twice, rendered as it is now
    await place.told("room:b", "b", kind="drawn")
    assert [await got(s) for s in both] == [["a"], ["a"]]
    assert place.rendered.asked == [{"a", "gone"}]


async def test_one_that_joins_within_a_batch_gets_what_is_rendered_after_it(place: Place) -> None:
    mina = await place.open("user:mina")
    await place.write(Event("user:mina", "joined", "a", {"s": "in"}), Event("room:a", "drawn", "a"))
    await place.hub.read_all()
    assert await got(mina) == ["in", "a"]


async def test_an_event_that_cannot_be_rendered_resets_its_own_listeners_and_no_others(place: Place) -> None:
    mina, jun = await place.open("room:broken"), await place.open("room:fine")
    await place.say("room:broken", "broken", kind="drawn")
    await place.told("room:fine", "fine", kind="drawn")
    assert (await got(mina), await got(jun)) == (["reset"], ["fine"])
    assert await got(await place.open("room:fine", "room:broken", cursor=place.hub.position - 2)) == ["reset"]


async def test_a_started_hub_follows_notifications_and_outlives_failures(
    place: Place, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener(database_url, place.clock)
    listener.subscribe(CHANNEL, place.hub.wake)
    mina = await place.open("user:mina")
    async with place.database.connection() as c:
        await c.execute("ALTER TABLE event_floor RENAME TO event_floor_elsewhere")
    place.hub.start()
    listener.start()
    while not place.clock._sleepers:  # it failed, and waits to try again
        await asyncio.sleep(0.01)
    async with place.database.connection() as c:
        await c.execute("ALTER TABLE event_floor_elsewhere RENAME TO event_floor")
    await place.say("user:mina", "1")
    waiting = asyncio.create_task(mina.next(60))
    while not waiting.done():
        await place.clock.advance(1)
        await asyncio.sleep(0.01)
    assert b'"1"' in (waiting.result() or b"")
    await listener.stop()
    await place.hub.stop()
    assert await mina.next(60) is None
