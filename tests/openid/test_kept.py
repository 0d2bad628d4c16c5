"""What was read of a provider, and how long people wait for one that is away."""

import asyncio

import pytest

from codehub.openid.client import AWAY_SECONDS, FRESH_SECONDS, Kept
from codehub.openid.errors import ProviderAwayError
from tests.virtual_time import ManualClock


class Source:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def read(self) -> str:
        self.asked += 1
        return await asyncio.shield(self.answer)

    def is_away(self) -> None:
        self.answer.set_exception(ProviderAwayError("it does not answer"))
        self.answer.exception()

    def is_asked_again(self) -> None:
        self.answer = asyncio.get_running_loop().create_future()


async def waiting(kept: "Kept[str]", source: Source, asked: int) -> "asyncio.Task[str]":
    """Somebody who asks, and for whom the provider is asked."""
    task = asyncio.create_task(kept.get())
    while source.asked < asked:
        await asyncio.sleep(0)
    return task


async def test_while_a_provider_is_away_one_waits_for_it_and_the_others_are_told_at_once(clock: ManualClock) -> None:
    """A request that waits takes a place of those that everybody behind its address has to log in otherwise."""
    source = Source()
    kept = Kept(clock, source.read)
    first = await waiting(kept, source, 1)
    source.is_away()
    with pytest.raises(ProviderAwayError):
        await first
    source.is_asked_again()
    await clock.advance(AWAY_SECONDS + 1)
    probing = await waiting(kept, source, 2)
    for _ in range(3):
        with pytest.raises(ProviderAwayError):
            await asyncio.wait_for(kept.get(), 5)
    assert source.asked == 2
    source.answer.set_result("keys")
    assert await probing == "keys"
    assert await kept.get() == "keys"


async def test_what_was_read_before_serves_those_who_come_while_it_is_away(clock: ManualClock) -> None:
    source = Source()
    kept = Kept(clock, source.read)
    source.answer.set_result("old keys")
    assert await kept.get() == "old keys"
    source.is_asked_again()
    await clock.advance(FRESH_SECONDS + 1)
    second = await waiting(kept, source, 2)
    source.is_away()
    assert await second == "old keys"
    source.is_asked_again()
    await clock.advance(AWAY_SECONDS + 1)
    probing = await waiting(kept, source, 3)
    assert await asyncio.wait_for(kept.get(), 5) == "old keys"
    source.answer.set_result("new keys")
    assert await probing == "new keys"
