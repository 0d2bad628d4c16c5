"""Idempotency keys through HTTP: the same answer byte for byte, conflicts, waiting for one in use, when they end."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import asyncpg
import pytest

from codehub.command import operator
from codehub.errors import InvalidRequestError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.sessions import idempotency
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.sessions.learning import CHECK, Learner, learner
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

DAY = 86400.0
START = "/sessions/{}/runs"


@pytest.fixture
async def hasty(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    """Waits a fifth of a second for a key in use."""
    sessions = dataclasses.replace(settings.sessions, idempotency_wait_seconds=0.2)
    hasty = dataclasses.replace(settings, sessions=sessions)
    async with open_services(hasty, clock) as services, serving(services) as site:
        yield site


async def waiting(database_url: str, count: int) -> None:
    """Until so many of the platform's statements wait for a lock."""
    watcher = await asyncpg.connect(database_url)
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND wait_event_type = 'Lock' AND application_name = 'codehub'"
    )
    async with asyncio.timeout(10):
        while await watcher.fetchval(query) < count:
            await asyncio.sleep(0.01)
    await watcher.close()


async def test_the_same_key_gets_the_stored_answer_byte_for_byte(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session(CHECK)
    first = await mina.request("POST", START.format(id_), **{"Idempotency-Key": "abc-123"})
    run = await first.json()
    assert first.status == 201
    assert "Idempotency-Replayed" not in first.headers
    await mina.complete(run, 0)
    await clock.advance(DAY)
    for body in (None, {}, {"resume_from": None}):
        again = await mina.request("POST", START.format(id_), body, **{"Idempotency-Key": "abc-123"})
        assert (again.status, again.headers["Idempotency-Replayed"]) == (201, "true")
        assert await again.text() == await first.text()
        assert again.headers["Content-Type"] == first.headers["Content-Type"]


async def test_a_recovery_is_replayed_with_its_own_status(mina: Learner) -> None:
    id_ = await mina.session()
    await mina.start(id_)
    recovered = await mina.start(id_, key="k")
    assert recovered[0] == 200
    await mina.start(id_)
    again = await mina.request("POST", START.format(id_), **{"Idempotency-Key": "k"})
    assert (again.status, await again.json(), again.headers["Idempotency-Replayed"]) == (*recovered, "true")


async def test_a_key_stands_for_one_session_and_one_body(mina: Learner) -> None:
    id_, other = await mina.session(), await mina.session()
    await mina.start(id_, key="k")
    for session_id, body in ((other, {}), (id_, {"resume_from": "x"}), ("nothing", {}), ("No.Label", {})):
        status, problem = await mina.start(session_id, key="k", **body)
        assert (status, problem["code"]) == (409, "IDEMPOTENCY_KEY_CONFLICT")
    assert (await mina.get(f"/sessions/{other}"))["status"] == "SCHEDULED"


async def test_a_key_is_looked_at_before_the_session(mina: Learner) -> None:
    id_ = await mina.session()
    first = await mina.start(id_, key="k")
    await mina.ask("POST", f"/sessions/{id_}/cancel")
    assert await mina.start(id_, key="k") == first


async def test_keys_are_each_persons_own(mina: Learner, site: Site) -> None:
    mine = await mina.start(await mina.session(), key="k")
    async with learner(site, "jun") as jun:
        his = await jun.start(await jun.session(), key="k")
    assert (mine[0], his[0]) == (201, 201)
    assert mine[1]["id"] != his[1]["id"]


async def test_a_refusal_is_not_stored(mina: Learner) -> None:
    plan = await mina.plan({**CHECK})
    id_ = plan["sessions"][0]["id"]
    await mina.abandon(await mina.started(id_))
    assert (await mina.start(id_, key="k", resume_from="nothing"))[0] == 400
    status, _ = await mina.start(id_, key="k")  # free for another request
    assert status == 201


@pytest.mark.parametrize(
    ("sent", "again"), [("abc-123", '"abc-123"'), ('"a b"', "a b"), ('"a\\"b"', 'a"b'), (" k ", "k")]
)
async def test_quoted_and_bare_are_the_same_key(mina: Learner, sent: str, again: str) -> None:
    id_ = await mina.session()
    first = await mina.start(id_, key=sent)
    assert await mina.start(id_, key=again) == first
    assert first[0] == 201


@pytest.mark.parametrize("key", ["x" * 255, '"' + "x" * 255 + '"', "~", "a/b+c=", "{}", 'a"'])
async def test_a_key_has_up_to_255_printable_characters(mina: Learner, key: str) -> None:
    assert (await mina.start(await mina.session(), key=key))[0] == 201


@pytest.mark.parametrize("key", ["", '""', "x" * 256, '"' + "x" * 256 + '"', '"abc', "키", "x" * 1000])
async def test_another_key_is_refused_by_its_name(mina: Learner, key: str) -> None:
    id_ = await mina.session()
    status, problem = await mina.start(id_, key=key)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert problem["errors"][0]["field"].lower() == "idempotency-key"
    assert (await mina.get(f"/sessions/{id_}"))["status"] == "SCHEDULED"


def test_control_characters_are_no_key() -> None:
    for key in ("a\x00b", "a\x7f", "a\nb"):
        with pytest.raises(InvalidRequestError):
            idempotency.parse(key)


async def test_many_requests_with_one_key_at_once_get_one_answer(mina: Learner) -> None:
    id_ = await mina.session()
    answers = await asyncio.gather(*(mina.start(id_, key="k") for _ in range(20)))
    assert {status for status, _ in answers} == {201}
    assert len({run["id"] for _, run in answers}) == 1
    assert {run["fence"] for _, run in answers} == {1}


async def test_one_key_for_two_sessions_at_once_starts_one_of_them(mina: Learner) -> None:
    both = [await mina.session(), await mina.session()]
    answers = await asyncio.gather(*(mina.start(id_, key="k") for id_ in both))
    assert sorted(status for status, _ in answers) == [201, 409]
    states = [(await mina.get(f"/sessions/{id_}"))["status"] for id_ in both]
    assert sorted(states) == ["IN_PROGRESS", "SCHEDULED"]


async def test_a_second_request_waits_for_the_first_with_its_key_and_answers_the_same(
    mina: Learner, database_url: str
) -> None:
    id_ = await mina.session()
    holder = await asyncpg.connect(database_url)
    async with holder.transaction():
        await holder.execute("SELECT FROM sessions WHERE id = $1 FOR UPDATE", id_)
        first = asyncio.create_task(mina.start(id_, key="k"))
        await waiting(database_url, 1)
        second = asyncio.create_task(mina.start(id_, key="k"))
        await waiting(database_url, 2)
        assert not first.done()
        assert not second.done()
    assert await first == await second
    assert (await first)[0] == 201
    await holder.close()


async def test_who_waited_too_long_for_a_key_is_told_when_to_come_again(hasty: Site, database_url: str) -> None:
    async with learner(hasty) as mina:
        id_ = await mina.session()
        person = await hasty.services.people.get_user(operator(), "mina")
        key = idempotency.key_of(Principal("mina", Role.LEARNER, ALL_SCOPES, person.id), "k", "whatever")
        assert key
        holder = await asyncpg.connect(database_url)
        async with holder.transaction():  # as another process does that handles a request with this key
            await holder.execute("SELECT pg_advisory_xact_lock($1)", key.lock)
            answer = await mina.request("POST", START.format(id_), **{"Idempotency-Key": "k"})
            assert (answer.status, (await answer.json())["code"]) == (409, "IDEMPOTENCY_KEY_IN_USE")
            assert int(answer.headers["Retry-After"]) >= 1
            assert (await mina.get(f"/sessions/{id_}"))["status"] == "SCHEDULED"
        assert (await mina.start(id_, key="k"))[0] == 201
        await holder.close()


async def test_a_session_that_is_held_for_too_long_is_not_blamed_on_the_key(hasty: Site, database_url: str) -> None:
    async with learner(hasty) as mina:
        id_ = await mina.session()
        holder = await asyncpg.connect(database_url)
        async with holder.transaction():
            await holder.execute("SELECT FROM sessions WHERE id = $1 FOR UPDATE", id_)
            answer = await mina.request("POST", START.format(id_), **{"Idempotency-Key": "k"})
            assert (answer.status, (await answer.json())["code"]) == (503, "UNAVAILABLE")
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await mina.start(id_, key="k"))[0] == 201
        await holder.close()


async def test_a_key_past_its_day_is_a_new_one_also_before_it_is_removed(mina: Learner, clock: ManualClock) -> None:
    id_, other = await mina.session(), await mina.session()
    _, run = await mina.start(id_, key="k")
    await clock.advance(DAY + 1)
    status, new = await mina.start(other, key="k")
    assert (status, new["session_id"]) == (201, other)
    assert await mina.start(other, key="k") == (status, new)
    assert new["id"] != run["id"]
