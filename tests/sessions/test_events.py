"""What the learner's other pages are told: ids and states, in the transaction of the change, and never content."""

import json
from typing import Any

from codehub.events.publisher import Publisher
from codehub.web.services import Services
from tests.sessions.learning import CHECK, FULL, RIGHT, Learner, add
from tests.web.server import Site

STATE_WORDS = {"run_id", "session_id", "plan_id", "status", "step_index", "fence"}


async def told(services: Services) -> list[tuple[str, str, Any]]:
    await Publisher(services.database, services.clock).publish()
    async with services.database.connection() as c:
        found = await c.fetch("SELECT audience, kind, data FROM events ORDER BY position")
        (mina,) = [row["id"] for row in await c.fetch("SELECT id FROM users WHERE name = 'mina'")]
        await c.execute("DELETE FROM events")
    assert {row["audience"] for row in found} <= {f"user:{mina}"}
    return [(row["kind"], row["data"].get("status", ""), row["data"]) for row in found]


def kinds(events: list[tuple[str, str, Any]]) -> list[tuple[str, str]]:
    return sorted((kind, status) for kind, status, _ in events)


async def test_each_change_is_told_to_its_learner_once(mina: Learner, services: Services) -> None:
    id_ = await mina.session(CHECK)
    assert kinds(await told(services)) == [("plan_updated", "")]
    run = await mina.started(id_)
    assert kinds(await told(services)) == [("run_updated", "RUNNING"), ("session_updated", "IN_PROGRESS")]
    run = await mina.started(id_)
    assert kinds(await told(services)) == [("run_updated", "RUNNING")]
    await mina.complete(run, 0, {"private": "text"})
    ((_, _, data),) = await told(services)
    assert (data["step_index"], data["fence"]) == (1, 2)
    await mina.complete(run, 0, {"private": "text"})  # a replay
    await mina.ask("POST", f"/runs/{run['id']}/activity", {"fence": 2})
    assert await told(services) == []
    await mina.complete(run, 1, {"answers": {}})  # fails
    assert kinds(await told(services)) == [("run_tried", "RUNNING")]
    await mina.abandon(run)
    assert kinds(await told(services)) == [("run_updated", "ABANDONED"), ("session_updated", "SCHEDULED")]
    run = await mina.started(id_)
    await told(services)
    await mina.complete(run, 0)
    await mina.complete(run, 1, RIGHT)
    await told(services)
    await mina.complete(run, 2)
    assert kinds(await told(services)) == [("run_updated", "COMPLETED"), ("session_updated", "COMPLETED")]


async def test_events_hold_ids_and_states_and_nothing_that_was_written(mina: Learner, services: Services) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await mina.complete(run, 0, {"private": "text"})
    await mina.ask("POST", f"/sessions/{id_}/skip")
    events = await told(services)
    assert kinds(events)[-2:] == [("session_updated", "IN_PROGRESS"), ("session_updated", "SKIPPED")]
    assert {name for _, _, data in events for name in data} <= STATE_WORDS
    assert "private" not in json.dumps(events)


async def test_a_page_that_listens_hears_of_a_start_elsewhere(mina: Learner, site: Site) -> None:
    site.services.hub.start()
    id_ = await mina.session()
    await add(site, "jun")
    async with (
        site.client(await site.token("mina")) as hers,
        site.client(await site.token("jun")) as his,
        hers.get("/api/v1/events") as stream,
        his.get("/api/v1/events") as other,
    ):
        await stream.content.readuntil(b"\n\n")
        await other.content.readuntil(b"\n\n")
        run = await mina.started(id_)
        heard = await stream.content.readuntil(b"\n\n")
        while b"run_updated" not in heard:
            heard = await stream.content.readuntil(b"\n\n")
        assert run["id"].encode() in heard
        assert not other.content._buffer
    await site.services.hub.stop()


async def test_a_run_that_gets_its_workspace_is_told_of_once(mina: Learner, services: Services) -> None:
    run = await mina.started(await mina.session(FULL))
    await told(services)
    for expected in ([{**run, "run_id": run["id"]}], []):
        status, _ = await mina.ask("POST", f"/runs/{run['id']}/workspace", {"fence": run["fence"]})
        assert status == 200
        await Publisher(services.database, services.clock).publish()
        async with services.database.connection() as c:
            found = await c.fetch("DELETE FROM events WHERE kind = 'run_updated' RETURNING data")
        for row, event in zip(found, expected, strict=True):
            assert set(row["data"]) == STATE_WORDS
            assert {name: event[name] for name in ("run_id", "session_id", "status", "step_index", "fence")} == {
                name: value for name, value in row["data"].items() if name != "plan_id"
            }
