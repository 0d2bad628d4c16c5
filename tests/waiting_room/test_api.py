"""Every row of the waiting room's API over HTTP, on real PostgreSQL and Redis: shapes, errors, and who may do what."""

from typing import Any

import aiohttp
import pytest

from codehub.policy.model import Role
from tests.waiting_room.queue_site import API, Answer, QueueSite

STATUS = {
    "status", "position", "eta_sec", "eta_low_sec", "eta_high_sec", "waiting_time", "ready_for_entry", "poll_after_ms",
    "paused", "passed", "opens_at", "offer_expires_at", "offer_sec", "waiting_token",
}  # fmt: skip
BASIC = {"Authorization": "Basic x"}  # not a token: what a browser would send by itself
SEED = {"status", "position", "eta_sec", "waiting_time", "ready_for_entry"}


async def test_join_answers_201_and_the_same_person_gets_the_same_token_and_place_with_200(queue: QueueSite) -> None:
    await queue.event()
    first = await queue.call("POST", "/join", "mina", json={"event_id": "workshop", "user_id": "mina"})
    assert first.status == 201
    assert first.body.keys() == STATUS
    assert (first.body["status"], first.body["position"], first.body["ready_for_entry"]) == ("waiting", 1, False)
    assert first.body["waiting_token"].startswith("workshop.")
    again = await queue.call("POST", "/join", "mina", json={"event_id": "workshop"})
    assert again.status == 200
    assert again.body["waiting_token"] == first.body["waiting_token"]
    assert (await queue.join("jun"))["position"] == 2


async def test_status_has_the_seeds_shape_and_counts_the_seconds(queue: QueueSite) -> None:
    await queue.event()
    token = await queue.token("mina")
    await queue.pass_time(15, token)
    answer = await queue.status(token)
    assert answer.status == 200
    assert answer.body.keys() >= SEED
    assert answer.body["waiting_time"] == 15
    assert answer.body["poll_after_ms"] >= 2000
    assert answer.body["eta_low_sec"] <= answer.body["eta_sec"] <= answer.body["eta_high_sec"]


async def test_ready_enter_and_the_same_reservation_when_it_is_repeated(queue: QueueSite) -> None:
    await queue.event()
    first, second = await queue.token("mina"), await queue.token("jun")
    await queue.tick()
    ready = (await queue.status(first)).body
    assert ready["ready_for_entry"]
    assert ready["offer_expires_at"]
    assert 0 < ready["offer_sec"] <= 60
    refused = await queue.enter(second)
    assert (refused.status, refused.code, refused.error["position"]) == (409, "NOT_YOUR_TURN", 2)
    entered = await queue.enter(first)
    assert entered.status == 200
    assert entered.body.keys() == {"reservation_token", "expires_at"}
    assert await queue.enter(first) == entered
    held = await queue.call("GET", "/events/workshop/place", "mina")
    assert held.body["reservation_token"] == entered.body["reservation_token"]
    assert held.body["state"] == "reserved"
    assert (await queue.status(second)).body["position"] == 1
    admitted = await queue.call("POST", "/join", "mina", json={"event_id": "workshop"})
    assert (admitted.status, admitted.code) == (409, "ALREADY_ADMITTED")
    assert (await queue.call("DELETE", "/events/workshop/place", "mina")).status == 204
    assert (await queue.call("GET", "/events/workshop/place", "mina")).code == "PLACE_NOT_FOUND"
    await queue.tick()
    assert (await queue.status(second)).body["ready_for_entry"]


async def test_nobody_enters_while_it_is_paused_or_not_yet_open(queue: QueueSite) -> None:
    opens_at = queue.clock.now().replace(hour=10).isoformat()
    await queue.event(opens_at=opens_at)
    token = await queue.token("mina")
    await queue.tick()
    waiting = (await queue.status(token)).body
    assert (waiting["ready_for_entry"], waiting["opens_at"][:19]) == (False, opens_at[:19])
    assert (await queue.enter(token)).code == "NOT_YOUR_TURN"
    await queue.event(opens_at=None, paused=True)
    await queue.tick()
    await queue.clock.advance(6)
    assert (await queue.status(token)).body["paused"]
    assert (await queue.enter(token)).code == "NOT_YOUR_TURN"
    await queue.event(paused=False)
    await queue.tick(2)
    assert (await queue.enter(token)).status == 200


@pytest.mark.parametrize("how", ["delete", "json", "beacon"])
async def test_leaving_is_at_once_and_204_also_when_already_gone(queue: QueueSite, how: str) -> None:
    await queue.event()
    first, second = await queue.token("mina"), await queue.token("jun")

    async def leave() -> Answer:
        if how == "delete":
            return await queue.leave(first)
        sent: dict[str, Any] = {"json": {"waiting_token": first}}
        if how == "beacon":
            sent = {"data": f'{{"waiting_token":"{first}"}}', "headers": {"content-type": "text/plain;charset=UTF-8"}}
        return await queue.call("POST", "/leave", **sent)

    for _ in range(2):
        assert (await leave()).status == 204
    assert (await queue.status(first)).code == "TOKEN_EXPIRED"
    assert (await queue.status(second)).body["position"] == 1


async def test_an_event_shows_what_was_put_and_how_many_wait(queue: QueueSite) -> None:
    wanted = {"capacity": 3, "admission_rate": 30.0, "order": "fifo", "place_lease_seconds": 600, "paused": False}
    made = await queue.call("PUT", "/events/workshop", "kim", role=Role.TEACHER, json=wanted)
    assert made.status == 201
    assert wanted.items() <= made.body.items()
    assert made.body["owner"] == "kim"
    for name in ("mina", "jun"):
        await queue.token(name)
    changed = await queue.call("PUT", "/events/workshop", "kim", json={"paused": True})
    assert (changed.status, changed.body["paused"], changed.body["capacity"]) == (200, True, 3)
    seen = await queue.call("GET", "/events/workshop", "mina")
    assert (seen.body["waiting"], seen.body["live"], seen.body["free"], seen.body["held"]) == (2, 2, 3, 0)
    line = await queue.call("GET", "/events/workshop/line", "kim")
    assert [(m["position"], m["user_id"], m["state"]) for m in line.body["items"]] == [
        (1, "mina", "live"),
        (2, "jun", "live"),
    ]
    page = await queue.call("GET", "/events/workshop/line?limit=1&cursor=1", "kim")
    assert [m["user_id"] for m in page.body["items"]] == ["jun"]
    listed = await queue.call("GET", "/events", "kim")
    assert [e["id"] for e in listed.body["items"]] == ["workshop"]


async def test_only_its_owner_and_admins_see_names_and_change_an_event(queue: QueueSite) -> None:
    await queue.person("lee", Role.TEACHER)
    assert (await queue.call("PUT", "/events/workshop", "kim", role=Role.TEACHER, json={"capacity": 1})).status == 201
    await queue.token("mina")
    for who in ("mina", "lee"):
        assert (await queue.call("GET", "/events/workshop/line", who)).code == "FORBIDDEN"
        assert (await queue.call("PUT", "/events/workshop", who, json={"paused": True})).code == "FORBIDDEN"
        assert "mina" not in str((await queue.call("GET", "/events/workshop", who)).body)
    assert (await queue.call("PUT", "/events/mine", "mina", json={"capacity": 1})).code == "FORBIDDEN"
    assert (await queue.call("PUT", "/events/new", "lee", json={"paused": True})).code == "EVENT_NOT_FOUND"
    assert (await queue.call("PUT", "/events/lab", "lee", json={"paused": True})).code == "FORBIDDEN"
    assert (await queue.call("PUT", "/events/lab", "admin", json={"capacity": 5})).code == "INVALID_REQUEST"
    assert (await queue.call("GET", "/events/lab", "mina")).body["capacity"] == 100
    assert (await queue.call("GET", "/events/workshop/line", "admin")).status == 200


async def test_a_draining_event_takes_nobody_new_and_keeps_those_in_line(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    token = await queue.token("mina")
    await queue.event(capacity=0, draining=True)
    closed = await queue.call("POST", "/join", "jun", json={"event_id": "workshop"})
    assert (closed.status, closed.code) == (409, "EVENT_CLOSED")
    assert await queue.token("mina") == token


async def test_only_an_admin_joins_for_others_by_any_name(queue: QueueSite) -> None:
    await queue.event()
    sent = {"event_id": "workshop", "user_id": "user 7@example.org"}
    assert (await queue.call("POST", "/join", "mina", json=sent)).code == "FORBIDDEN"
    one, two = [await queue.call("POST", "/join", "admin", json=sent) for _ in range(2)]
    assert (one.status, two.status) == (201, 200)
    assert one.body["waiting_token"] == two.body["waiting_token"]
    own = await queue.call("POST", "/join", "mina", json={"event_id": "workshop", "user_id": "mina"})
    assert own.body["position"] == 2


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("POST", "/join", {"json": {"event_id": "nothing"}}, 404, "EVENT_NOT_FOUND"),
        ("POST", "/join", {"json": {"event_id": "../{x}"}}, 404, "EVENT_NOT_FOUND"),
        ("POST", "/join", {"json": {}}, 400, "INVALID_REQUEST"),
        ("POST", "/join", {"json": {"event_id": 7}}, 400, "INVALID_REQUEST"),
        ("POST", "/join", {"json": {"event_id": "a\0"}}, 400, "INVALID_REQUEST"),
        ("POST", "/join", {"data": b"{", "headers": {"content-type": "application/json"}}, 400, "INVALID_REQUEST"),
        ("POST", "/join", {"data": b"x" * 70_000}, 413, "TOO_LARGE"),
        ("GET", "/status", {}, 400, "INVALID_REQUEST"),
        ("GET", "/status", {"params": {"token": "x" * 3000}}, 400, "INVALID_REQUEST"),
        ("GET", "/status", {"params": {"token": "nothing"}}, 404, "TOKEN_EXPIRED"),
        ("GET", "/stream", {"params": {"token": "workshop.a.b.c"}}, 404, "TOKEN_EXPIRED"),
        ("POST", "/enter", {"json": {"waiting_token": "한글"}}, 404, "TOKEN_EXPIRED"),
        ("POST", "/enter", {"json": {"token": "x"}}, 400, "INVALID_REQUEST"),
        ("DELETE", "/leave", {"params": {"token": "nothing"}}, 404, "TOKEN_EXPIRED"),
        ("POST", "/leave", {"data": b"waiting_token=7"}, 400, "INVALID_REQUEST"),
        ("POST", "/leave", {"data": b"\xff"}, 400, "INVALID_REQUEST"),
        ("GET", "/events/nothing", {}, 404, "EVENT_NOT_FOUND"),
        ("PUT", "/events/not a name", {"json": {"capacity": 1}}, 400, "INVALID_REQUEST"),
        ("PUT", "/events/workshop", {"json": {"capacity": None}}, 400, "INVALID_REQUEST"),
        ("PUT", "/events/workshop", {"json": {"capacity": 1, "admission_rate": 5e-324}}, 400, "INVALID_REQUEST"),
        ("PUT", "/events/workshop", {"json": {"capacity": 1, "opens_at": 7}}, 400, "INVALID_REQUEST"),
        ("GET", "/events/nothing/place", {}, 404, "EVENT_NOT_FOUND"),
        ("GET", "/nothing", {}, 404, "NOT_FOUND"),
        ("PUT", "/join", {"json": {}}, 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/join", {"json": {}, "headers": {"Origin": "http://evil.example", **BASIC}}, 403, "FORBIDDEN"),
    ],
)  # fmt: skip
async def test_every_error_has_the_seeds_shape(
    queue: QueueSite, method: str, path: str, sent: Any, status: int, code: str
) -> None:
    answer = await queue.call(method, path, "mina", **sent)
    assert (answer.status, answer.code) == (status, code)


async def test_what_needs_a_login_says_so_in_the_same_shape(queue: QueueSite) -> None:
    for method, path in (("POST", "/join"), ("GET", "/events"), ("GET", "/events/lab"), ("GET", "/events/lab/place")):
        answer = await queue.call(method, path, json={"event_id": "lab"})
        assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")


async def test_no_token_serves_for_another_place(queue: QueueSite) -> None:
    """Altered, of another event, of another person: whatever is no whole token of ours is none at all."""
    await queue.event()
    await queue.event("other")
    mine, theirs, elsewhere = (
        await queue.token("mina"),
        await queue.token("jun"),
        await queue.token("mina", "other"),
    )
    (event, pid, body, signature), parts = mine.split("."), theirs.split(".")
    forged = {
        f"{event}.{pid}.{body}.{signature[:-1]}{'A' if signature[-1] != 'A' else 'B'}",
        f"{event}.{parts[1]}.{body}.{signature}",
        f"{event}.{pid}.{parts[2]}.{signature}",
        f"other.{pid}.{body}.{signature}",
        f"{event}.{pid}.{body}",
        f"{event}.{pid}.{body}.",
        f"{mine}.x",
        mine.replace(".", "..", 1),
        elsewhere.replace("other", "workshop", 1),
    }
    await queue.tick()
    for token in forged:
        for answer in (await queue.status(token), await queue.enter(token), await queue.leave(token)):
            assert (answer.status, answer.code) == (404, "TOKEN_EXPIRED"), token
    assert (await queue.status(mine)).body["ready_for_entry"]
    assert (await queue.status(theirs)).body["position"] == 2
    assert (await queue.status(elsewhere)).body["position"] == 1


async def test_one_person_cannot_join_or_leave_without_end_and_others_are_not_held_up(queue: QueueSite) -> None:
    await queue.event()
    token = await queue.token("mina")
    most = queue.site.services.settings.limits.max_changes_per_minute
    async with queue.site.client(await queue.person("mina")) as client:
        answers = [await _post(client, "/join", {"event_id": "workshop"}) for _ in range(most + 1)]
    assert answers[-1] == (429, "RATE_LIMIT")
    async with queue.site.client() as client:
        answers = [await _post(client, "/enter", {"waiting_token": token}) for _ in range(most + 1)]
    assert answers[-1] == (429, "RATE_LIMIT")
    assert (await queue.join("jun"))["position"] == 2
    assert (await queue.status(token)).status == 200  # asking is what keeps the place: it is never refused


async def _post(client: aiohttp.ClientSession, path: str, body: Any) -> tuple[int, str | None]:
    async with client.post(f"{API}{path}", json=body) as answer:
        said = await answer.json()
        return answer.status, said.get("error", {}).get("code")


async def test_a_moment_that_is_no_date_in_another_time_zone_is_the_clients_mistake(queue: QueueSite) -> None:
    for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z"):
        answer = await queue.call("PUT", "/events/far", "admin", json={"capacity": 1, "opens_at": moment})
        assert (answer.status, answer.code) == (400, "INVALID_REQUEST"), moment
    answer = await queue.call(
        "PUT", "/events/far", "admin", json={"capacity": 1, "opens_at": "9998-12-31T23:59:59-12:00"}
    )
    assert answer.status == 201


async def test_a_name_of_spaces_is_none(queue: QueueSite) -> None:
    await queue.event()
    answer = await queue.call("POST", "/join", "admin", json={"event_id": "workshop", "user_id": "  "})
    assert (answer.status, answer.code) == (400, "INVALID_REQUEST")
