"""A teacher in a learner's workspace, through the proxy: let in, and out within seconds when the class ends."""

from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from codehub.classes.model import MemberRole
from codehub.command import operator
from codehub.policy.model import Role
from codehub.workspaces.model import Workspace
from tests.gate.lab import PAGE, Lab
from tests.gate.test_endings import SOON

Ending = Callable[[Lab, str], Awaitable[object]]


async def school(lab: Lab) -> tuple[Workspace, str]:
    """Mina's, which runs; kim and han teach her, lee does not."""
    for name, role in (("mina", Role.LEARNER), *((name, Role.TEACHER) for name in ("kim", "han", "lee"))):
        await lab.services.people.create_user(operator(), name, role)
    w = await lab.running("mina")
    classes = lab.services.classes
    made = await classes.create(operator(), "Python")
    for name in ("kim", "han"):
        await classes.add_member(operator(), made.id, name, MemberRole.TEACHER)
    await classes.add_member(operator(), made.id, "mina", MemberRole.LEARNER)
    await lab.known(w, teachers=frozenset({"kim", "han"}))
    return w, made.id


ENDINGS: dict[str, Ending] = {
    "the class is archived": lambda lab, id_: lab.services.classes.change(operator(), id_, archived=True),
    "the learner leaves it": lambda lab, id_: lab.services.classes.remove_member(operator(), id_, "mina"),
    "the class is deleted": lambda lab, id_: lab.services.classes.delete(operator(), id_),
    "the teacher leaves it": lambda lab, id_: lab.services.classes.remove_member(operator(), id_, "kim"),
    "the teacher is one no more": lambda lab, _: _becomes(lab, "kim", Role.LEARNER),
    "the learner becomes a teacher": lambda lab, _: _becomes(lab, "mina", Role.TEACHER),
}


async def _becomes(lab: Lab, name: str, role: Role) -> None:
    await lab.services.people.change_user(operator(), name, role=role, active=None)


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_teacher_is_let_in_and_what_is_open_ends_when(lab: Lab, ending: str) -> None:
    w, class_id = await school(lab)
    inside = f"{lab.origin(w.id)}/w/{w.id}"
    async with lab.browser("kim") as browser:
        async with browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
            assert answer.status == 200
        socket = await browser.ws_connect(f"{inside}/ws", headers={"Origin": lab.origin(w.id)})
        await socket.send_str("hello")
        assert await socket.receive_str() == "hello"
        await ENDINGS[ending](lab, class_id)
        closed = await socket.receive(timeout=SOON)
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1008)
        async with browser.get(f"{inside}/api") as answer:
            assert answer.status in {401, 404}


async def test_a_teacher_of_another_class_finds_nothing(lab: Lab) -> None:
    w, _ = await school(lab)
    async with lab.browser("lee") as browser, browser.get(f"{lab.url}/w/{w.id}/", headers=PAGE) as answer:
        assert answer.status == 404
