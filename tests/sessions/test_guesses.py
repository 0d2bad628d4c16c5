"""Answers cannot be found by trying, from anything that a learner gets: neither on their own machine nor by own plans.

The attack: the learner has all of the blueprint but the answers, puts each possible answer in, and compares hashes.
"""

import itertools
from typing import Any

from codehub.policy.model import Role
from codehub.sessions import blueprint
from tests.sessions.learning import CHECK, QUESTION, Learner, learner
from tests.web.server import Site

CHOICES = [{"id": name, "text": name} for name in "abcd"]
SINGLE = {**QUESTION, "choices": CHOICES, "answer": "c", "feedback": {}}
SEVERAL = {**SINGLE, "id": "several", "kind": "multiple", "answer": ["b", "d"]}
LESSON = {**CHECK, "checkQuestions": [SINGLE, SEVERAL]}
SUBSETS = [list(few) for size in range(1, 5) for few in itertools.combinations("abcd", size)]
GUESSES: list[Any] = [
    {**CHECK, "checkQuestions": [{**SINGLE, "answer": one}, {**SEVERAL, "answer": few}]}
    for one in "abcd"
    for few in SUBSETS
]


async def told(mina: Learner, plan: Any) -> str:
    """All that the API says of a plan, its session and a run of it."""
    session_id = plan["sessions"][0]["id"]
    run = await mina.started(session_id)
    replies = [plan, run, await mina.started(session_id)]
    replies.append(await mina.complete(replies[-1], 0))
    paths = (f"/plans/{plan['id']}", f"/sessions/{session_id}", f"/sessions/{session_id}/runs", f"/runs/{run['id']}")
    replies += [await mina.get(path) for path in paths]
    lesson = await mina.request("GET", f"/sessions/{session_id}/blueprint")
    replies += [await lesson.json(), dict(lesson.headers)]
    return str(replies)


async def test_no_answer_is_found_by_hashing_every_possible_one(mina: Learner, site: Site) -> None:
    async with learner(site, "boss", Role.ADMIN) as boss:
        plan = await boss.plan(LESSON, owner="mina")
    hashes = {blueprint.digest(blueprint.canonical(blueprint.parse(guess))) for guess in GUESSES}
    assert len(hashes) == len(GUESSES) == 60
    assert blueprint.digest(blueprint.canonical(blueprint.parse(LESSON))) in hashes
    said = await told(mina, await mina.get(f"/plans/{plan['id']}"))
    assert {hash_ for hash_ in hashes if hash_ in said} == set()
    assert plan["sessions"][0]["blueprint_hash"] in said


async def test_no_answer_is_found_by_making_plans_with_every_possible_one(mina: Learner) -> None:
    of_all = await mina.plan(*GUESSES[:8], LESSON)
    assert len({session["blueprint_hash"] for session in of_all["sessions"]}) == 1
    other = await mina.plan({**LESSON, "encouragement": "Bravo"})
    assert other["sessions"][0]["blueprint_hash"] != of_all["sessions"][0]["blueprint_hash"]


async def test_the_database_tells_blueprints_apart_by_their_answers(mina: Learner, site: Site) -> None:
    await mina.plan(*GUESSES[:2])
    async with site.services.database.connection() as c:
        found = await c.fetch("SELECT hash, view_hash FROM blueprints")
    assert (len({row["hash"] for row in found}), len({row["view_hash"] for row in found})) == (2, 1)
