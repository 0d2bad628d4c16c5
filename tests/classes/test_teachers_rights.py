"""What a class lets its teachers see of their learners' workspaces, and how a learner hears of them.

The table of what they may do is walked on the real platform: `tests/workspaces/test_teachers.py`.
"""

from tests.auth.helpers import BROWSER
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.sessions.learning import Learner
from tests.web.server import Site
from tests.web.test_live import listening

SLEEPING = {"name": "Recursion", "template": "terminal", "desired_state": "STANDBY"}


async def hers(mina: Learner) -> str:
    status, made = await mina.ask("POST", "/workspaces", SLEEPING)
    assert status == 201, made
    return str(made["id"])


async def test_a_classs_workspaces_are_listed_for_its_teachers_and_admins_alone(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner, person: Enrol
) -> None:
    jun = await person("jun")
    ids = {await hers(mina), await hers(jun)}
    other = await person("other")
    await hers(other)
    made = await a_class(kim, "mina", "jun")
    path = f"/workspaces?class={made['id']}"
    for who in (kim, admin):
        assert {w["id"] for w in (await who.get(path))["items"]} == ids
    assert [w["owner"] for w in (await kim.get(f"{path}&owner=jun"))["items"]] == ["jun"]
    for who in (lee, mina):
        assert (await who.ask("GET", path))[0] == 404
    assert (await kim.ask("GET", "/workspaces?class=nowhere"))[0] == 404
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    assert (await kim.get(path))["items"] == []
    assert (await kim.get("/workspaces"))["items"] == []  # hers alone, of which there are none


async def test_a_learner_is_told_at_once_by_name_that_a_teacher_came(site: Site, kim: Learner, mina: Learner) -> None:
    id_ = await hers(mina)
    await a_class(kim, "mina")
    await kim.ask("PATCH", "/users/kim", {"display_name": "김 선생님"})
    site.services.hub.start()
    async with listening(site, "mina") as stream, site.browser("kim") as teacher:
        cookie = next(c.value for c in teacher.cookie_jar if c.key == "codehub")
        caller = (await site.services.credentials.by_cookie(cookie, BROWSER)).caller
        await site.services.access.arrive(caller, id_)
        said = await stream.until("workspace_visited")
    await site.services.hub.stop()
    assert (said["by"], said["what"], said["workspace"]) == ("김 선생님", "entered", "Recursion")
