"""The table of a plan's actions through HTTP, on a real server: its learner, teacher, admin and another learner."""

import pytest

from codehub.command import operator
from codehub.errors import ForbiddenError
from codehub.policy.actions import TABLE, Action, Subject
from codehub.policy.model import Role
from tests.policy.test_doors import add_people, letter
from tests.policy.test_table import CELLS, WHO
from tests.sessions.learning import Learner, add
from tests.web.server import Site

NAMES = {"owner": "mina", "admin": "boss", "stranger": "sora", "other teacher": "kim"}
SESSION, RUN = "/sessions/{session}", "/runs/{run}"
REQUESTS: dict[Action, list[tuple[str, str, object]]] = {
    Action.PLAN_SEE: [("GET", "/plans/{plan}", None)],
    Action.SESSION_SEE: [("GET", SESSION, None), ("GET", f"{SESSION}/blueprint", None)],
    Action.RUN_SEE: [
        ("GET", f"{SESSION}/runs", None),
        ("GET", RUN, None),
        ("GET", f"{RUN}/snapshots", None),
        ("GET", f"{RUN}/tries", None),
        ("GET", f"{RUN}/help", None),
    ],
    Action.RUN_START: [("POST", f"{SESSION}/runs", None)],
    Action.RUN_WRITE: [
        ("POST", f"{RUN}/activity", {"fence": 1}),
        ("POST", f"{RUN}/steps/0/complete", {"fence": 1, "state": {}}),
    ],
    Action.RUN_HELP: [("DELETE", f"{RUN}/help", None)],
    Action.RUN_ABANDON: [("POST", f"{RUN}/abandon", {"fence": 1})],
    Action.SESSION_SKIP: [("POST", f"{SESSION}/skip", None)],
    Action.SESSION_CANCEL: [("POST", f"{SESSION}/cancel", None)],
}


def test_every_action_on_a_plan_is_asked_for_here() -> None:
    assert set(REQUESTS) == {action for action, rule in TABLE.items() if rule.subject is Subject.PLAN}


@pytest.mark.parametrize("who", NAMES)
async def test_always_check_ownership_each_cell_of_a_plans_table_through_http(site: Site, who: str) -> None:
    await add_people(site)
    await add(site, "kim", Role.TEACHER)
    column = list(WHO).index(who)
    async with site.client(await site.token("mina")) as hers, site.client(await site.token(NAMES[who])) as client:
        mina = Learner(hers)
        for action, requests in REQUESTS.items():
            plan = await mina.plan()
            run = await mina.started(plan["sessions"][0]["id"])
            ids = {"plan": plan["id"], "session": run["session_id"], "run": run["id"]}
            for method, path, body in requests:
                said = await letter(client, method, f"/api/v1{path.format(**ids)}", body)
                assert said == CELLS[action][column], (action, method, path)


async def test_the_operator_reads_a_run_and_does_not_write_it(site: Site) -> None:
    await add_people(site)
    runs, shell = site.services.runs, operator()
    async with site.client(await site.token("mina")) as hers:
        mina = Learner(hers)
        run = await mina.started(await mina.session())
        for write in (
            runs.start(shell, run["session_id"]),
            runs.complete_step(shell, run["id"], 0, 1, {}),
            runs.record_activity(shell, run["id"], 1),
            runs.abandon(shell, run["id"], 1, None),
            site.services.practice.open(shell, run["id"], 1),
        ):
            with pytest.raises(ForbiddenError, match="mina does"):
                await write
        assert await mina.get(f"/runs/{run['id']}") == run
    assert (await runs.get(shell, run["id"])).owner == "mina"


async def test_anothers_and_none_are_told_apart_by_nothing(site: Site) -> None:
    await add_people(site)
    async with site.client(await site.token("mina")) as hers, site.client(await site.token("sora")) as client:
        mina, sora = Learner(hers), Learner(client)
        plan = await mina.plan()
        run = await mina.started(plan["sessions"][0]["id"])
        for path, real, code in (
            ("/plans/{}", plan["id"], "PLAN_NOT_FOUND"),
            ("/sessions/{}", run["session_id"], "SESSION_NOT_FOUND"),
            ("/runs/{}", run["id"], "RUN_NOT_FOUND"),
        ):
            answers = [await sora.ask("GET", path.format(id_)) for id_ in (real, "abcdefghijkl", "No.Label")]
            assert {(status, problem["code"]) for status, problem in answers} == {(404, code)}
            details = [problem["detail"].rsplit(" ", 1)[0] for _, problem in answers]
            assert len(set(details)) == 1
