"""`codehub queue …` beside a running platform: one event from its making to its end, for people and for programs."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.command.running import found, refused, said
from tests.platform import Platform
from tests.workspaces.test_lifecycle import lab


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


async def join(platform: Platform, name: str) -> None:
    async with platform.client() as client:
        await (await client.post("/api/v1/users", json={"name": name, "role": "learner"})).read()
        sent = {"event_id": "workshop", "user_id": name}
        async with client.post("/api/v1/queue/join", json=sent) as answer:
            assert answer.status == 201, await answer.text()


def test_an_event_is_opened_paused_drained_and_shown_with_who_waits(platform: Platform) -> None:
    assert "capacity" in refused(platform, "queue", "open", "workshop")
    made = found(platform, "queue", "open", "workshop", "--capacity", "0", "--rate", "30")
    assert (made["id"], made["capacity"], made["admission_rate"], made["owner"]) == ("workshop", 0, 30.0, None)
    for name in ("mina", "jun"):
        asyncio.run(join(platform, name))
    shown = said(platform, "queue", "show", "workshop")
    assert shown.startswith("workshop: open\n2 waiting (2 of them heard of lately), 0 inside, places: 0\n")
    assert [line.split()[:3] for line in shown.splitlines()[-2:]] == [["1", "mina", "live"], ["2", "jun", "live"]]
    shown = found(platform, "queue", "show", "workshop", "--people", "1")
    assert [person["user_id"] for person in shown["line"]] == ["mina"]
    assert said(platform, "queue", "pause", "workshop").startswith("workshop: paused\n")
    assert found(platform, "queue", "drain", "workshop")["draining"]
    listed = said(platform, "queue", "events")
    assert "workshop  paused, draining  2" in listed
    assert listed.splitlines()[1].startswith("lab ")
    opened = found(platform, "queue", "open", "workshop", "--rate", "0")
    assert (opened["paused"], opened["draining"], opened["admission_rate"]) == (False, False, None)


def test_what_is_refused_is_said_in_one_line(platform: Platform) -> None:
    for verb in ("pause", "drain", "show"):
        assert refused(platform, "queue", verb, "nothing").startswith("codehub: there is no event nothing")
    assert "2026-03-02T18:00" in refused(platform, "queue", "open", "late", "--opens-at", "soon")
