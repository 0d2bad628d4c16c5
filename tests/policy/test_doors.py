"""The table of a workspace's actions through HTTP, on a real server: owner, guest, admin and somebody else."""

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.actions import Action
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.policy.test_table import CELLS, WHO
from tests.web.server import Site

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
KEY = "home.tar.zst"
NAMES = {"owner": "mina", "guest": "jun", "admin": "boss", "stranger": "sora"}
REQUESTS: dict[Action, list[tuple[str, str, object]]] = {
    Action.WORKSPACE_SEE: [("GET", "", None)],
    Action.WORKSPACE_HISTORY: [("GET", "/history", None), ("GET", "/activity", None), ("GET", "/logs", None)],
    Action.WORKSPACE_START: [("PATCH", "", {"desired_state": "RUNNING"})],
    Action.WORKSPACE_SLEEP: [("PATCH", "", {"desired_state": "STANDBY"})],
    Action.WORKSPACE_KEEP_AWAKE: [("PATCH", "", {"keep_awake_until": "2026-03-02T10:00:00Z"})],
    Action.WORKSPACE_CHANGE: [("PATCH", "", {"name": "Mine"}), ("PATCH", "", {"standby_ttl_seconds": 60})],
    Action.WORKSPACE_SHARES: [("GET", "/shares", None)],
    Action.WORKSPACE_SHARE: [("POST", "/shares", {"user": "hana"}), ("DELETE", "/shares/hana", None)],
    Action.WORKSPACE_LEAVE: [("DELETE", "/shares/{me}", None)],
    Action.WORKSPACE_POINTS: [("GET", "/restore-points", None)],
    Action.WORKSPACE_RESTORE: [("POST", "/restore", {"archive_key": KEY})],
    Action.WORKSPACE_RECOVER: [("POST", "/recover", {})],
    Action.WORKSPACE_FETCH: [("POST", "/fetch", None)],
    Action.WORKSPACE_DOWNLOAD: [("HEAD", "/download", None)],
    Action.WORKSPACE_ARCHIVE: [("PATCH", "", {"desired_state": "ARCHIVED"})],
    Action.WORKSPACE_DELETE: [("DELETE", "", None), ("POST", "/undelete", None)],
    Action.WORKSPACE_PURGE: [("DELETE", "?purge=true", None)],
}


async def add_people(site: Site) -> None:
    people = site.services.people
    for name in ("mina", "jun", "sora", "hana"):
        await people.create_user(operator(), name, Role.LEARNER)
    await people.create_user(operator(), "boss", Role.ADMIN)


async def new_workspace(site: Site) -> str:
    """Mina's, asleep, archived once, and shared with jun."""
    services = site.services
    new = NewWorkspace("Week 3", "terminal", Desired.ARCHIVED, git_url="https://example.org/x.git")
    made = admitted(await services.workspaces.create(MINA, new))
    async with services.database.transaction() as c:
        await c.execute(
            "UPDATE workspaces SET observed_status = 'STANDBY', desired_state = 'STANDBY', archive_key = $2 "
            "WHERE id = $1",
            made.id,
            KEY,
        )
    await services.sharing.share(MINA, made.id, "jun")
    return made.id


async def letter(client: aiohttp.ClientSession, method: str, path: str, body: object) -> str:
    async with client.request(method, path, json=body) as answer:
        assert answer.status < 500, await answer.text()
        return {403: "F", 404: "H"}.get(answer.status, "Y")


@pytest.mark.parametrize("who", NAMES)
async def test_each_cell_of_a_workspaces_table_through_http(site: Site, who: str) -> None:
    await add_people(site)
    me, column = NAMES[who], list(WHO).index(who)
    found, expected = {}, {}
    async with site.client(await site.token(me)) as client:
        for action, requests in REQUESTS.items():
            path = f"/api/v1/workspaces/{await new_workspace(site)}"
            for method, rest, body in requests:
                said = await letter(client, method, path + rest.format(me=me), body)
                found[action, method, rest] = said
                expected[action, method, rest] = CELLS[action][column].replace("T", "Y")
            async with site.services.database.transaction() as c:  # each begins with nothing that counts
                await c.execute("UPDATE workspaces SET observed_status = 'STANDBY', desired_state = 'STANDBY'")
                await c.execute("DELETE FROM workspace_shares")
    assert found == expected


async def test_every_action_of_a_workspace_is_walked_here_or_at_the_gate() -> None:
    at_the_gate = {Action.WORKSPACE_ENTER, Action.WORKSPACE_WORK, Action.WORKSPACE_WAKE}
    assert {*REQUESTS, *at_the_gate} == {action for action in CELLS if action.startswith("workspace.")}


async def test_a_form_asks_at_the_same_door(site: Site) -> None:
    await add_people(site)
    id_ = await new_workspace(site)
    same = {"Sec-Fetch-Site": "same-origin"}
    for who, problem in (("jun", "FORBIDDEN"), ("sora", "NOT_FOUND"), ("mina", None), ("boss", None)):
        async with site.browser(who) as browser:
            sent = browser.post(f"/do/{id_}/rename", data={"name": "Other"}, headers=same, allow_redirects=False)
            async with sent as answer:
                assert answer.status == 303
                said = (
                    f"problem={problem}" in answer.headers["location"]
                    if problem
                    else "done=" in answer.headers["location"]
                )
                assert said, (who, answer.headers["location"])


async def test_what_is_asked_for_on_anothers_behalf_says_so_in_the_row(site: Site) -> None:
    await add_people(site)
    id_ = await new_workspace(site)
    workspaces = site.services.workspaces
    boss = Principal("boss", Role.ADMIN, ALL_SCOPES)
    for who, by in ((MINA, "user"), (boss, "admin"), (operator(), "operator")):
        changed, _ = admitted(await workspaces.request(who, id_, Desired.STANDBY))
        assert changed.desired_by == by
    made = admitted(
        await workspaces.create(operator(), NewWorkspace("For her", "terminal", Desired.ARCHIVED, owner="mina"))
    )
    assert (made.owner, made.desired_by) == ("mina", "operator")
    (line,) = await workspaces.history(MINA, made.id, before=2**62, limit=1)
    assert line.actor.startswith("cli:")
