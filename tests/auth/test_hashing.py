"""The pool that passwords are hashed in: few at a time, networks in turn, bounded."""

import asyncio

import pytest

from codehub.auth.hashing import HASHER, Hashing, Turns
from codehub.errors import BusyError

LAMP = "a quiet lamp by the river"


async def test_a_password_matches_its_own_hash_and_nothing_else() -> None:
    hashing = Hashing()
    hashed = await hashing.hash(LAMP, "n")
    assert hashed.startswith("$argon2id$")
    assert LAMP not in hashed
    assert await hashing.matches(hashed, LAMP, "n")
    assert not await hashing.matches(hashed, LAMP + " ", "n")
    assert not await hashing.matches(hashed, "\ud800", "n")
    assert not await hashing.matches("no hash", LAMP, "n")
    assert not await hashing.matches(None, "", "n")  # there is none: not even nothing is right
    assert not hashing.is_outdated(hashed)


async def test_where_there_is_no_password_a_hash_of_the_same_cost_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the library is asked to do is looked at; it does it."""
    asked: list[str] = []
    real = type(HASHER).verify

    def verify(self: object, hashed: str, password: bytes) -> bool:
        asked.append(hashed)
        return real(HASHER, hashed, password)

    monkeypatch.setattr(type(HASHER), "verify", verify)
    hashing = Hashing()
    await hashing.matches(None, LAMP, "n")
    await hashing.matches(HASHER.hash("another"), LAMP, "n")
    costs = [hashed.rsplit("$", 2)[0] for hashed in asked]
    assert len(costs) == 2
    assert costs[0] == costs[1]


async def test_networks_take_turns_so_that_one_that_sends_many_waits_for_itself() -> None:
    turns, order = Turns(1, 10, 100), []

    async def one(network: str) -> None:
        await turns.take(network)
        order.append(network)
        await asyncio.sleep(0)
        turns.give_back()

    await turns.take("first")
    flood = [asyncio.create_task(one("flood")) for _ in range(5)]
    await asyncio.sleep(0)
    school = [asyncio.create_task(one("school")) for _ in range(2)]
    await asyncio.sleep(0)
    turns.give_back()
    await asyncio.gather(*flood, *school)
    assert order == ["flood", "school", "flood", "school", "flood", "flood", "flood"]


async def test_what_waits_is_bounded_for_a_network_and_in_all() -> None:
    turns = Turns(1, 2, 3)
    await turns.take("a")
    waiting = [asyncio.create_task(turns.take(network)) for network in ("a", "a", "b")]
    await asyncio.sleep(0)
    for network in ("a", "c"):
        with pytest.raises(BusyError) as refused:
            await turns.take(network)
        assert refused.value.retry_after
    for _ in waiting:
        turns.give_back()
    await asyncio.gather(*waiting)
    turns.give_back()
    await turns.take("c")  # all of it is free again


async def test_a_client_that_leaves_leaves_no_turn_behind() -> None:
    turns = Turns(1, 5, 5)
    await turns.take("a")
    leaver, stays = asyncio.create_task(turns.take("a")), asyncio.create_task(turns.take("b"))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    turns.give_back()
    await stays
    given = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    turns.give_back()  # it is given, and its client leaves before it runs on
    given.cancel()
    await asyncio.gather(given, return_exceptions=True)
    async with asyncio.timeout(5):
        await turns.take("b")
