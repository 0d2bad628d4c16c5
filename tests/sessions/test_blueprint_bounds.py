"""What reading blueprints may cost: how many steps, files and errors at once, how much is kept in the process."""

import pytest

from codehub.courses import source
from codehub.errors import ERRORS_AT_MOST, InvalidRequestError
from codehub.sessions import blueprint, blueprints
from codehub.sessions.store import sql
from codehub.web.services import Services
from tests.sessions.learning import LEARN, Learner

MANY_STEPS = {**LEARN, "steps": [*["LEARN"] * 1998, "COMPLETE"]}
MANY_FILES = {
    **LEARN,
    "steps": ["PRACTICE", "COMPLETE"],
    "practiceActivity": {"instructions": "Do it.", "files": {f"{n}.txt": "" for n in range(100)}},
}


def course(*given: object) -> dict[str, object]:
    sessions = [{"key": f"s{n}", "title": "One", "day": 1, "blueprint": one} for n, one in enumerate(given)]
    return {"title": "Course", "language": "en", "sessions": sessions}


@pytest.mark.parametrize(("one", "what", "times"), [(MANY_STEPS, "steps", 11), (MANY_FILES, "starter files", 101)])
async def test_a_plan_and_a_course_have_so_many_steps_and_files_in_all(
    mina: Learner, one: object, what: str, times: int
) -> None:
    sessions = [{"title": "One", "scheduled_for_date": "2026-03-02", "blueprint": one}] * times
    status, problem = await mina.ask("POST", "/plans", {"title": "Plan", "sessions": sessions})
    assert (status, problem["code"], problem["errors"][0]["field"]) == (400, "INVALID_REQUEST", "sessions")
    assert what in problem["detail"]
    with pytest.raises(InvalidRequestError, match=what):
        source.parse(course(*[one] * times))
    status, problem = await mina.ask("POST", "/plans", {"title": "Plan", "sessions": sessions[:-1]})
    assert status == 201, problem


def test_no_more_sessions_are_read_than_there_are_errors_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's author is told everything."""
    read = list[object]()
    real = blueprint.read

    def counted(value: object) -> object:
        read.append(value)
        return real(value)

    monkeypatch.setattr(blueprint, "read", counted)
    broken = {**LEARN, "steps": ["NONE"] * 10}
    wrong = course(*[broken] * 200)
    with pytest.raises(InvalidRequestError) as refused:
        source.parse(wrong)
    assert len(refused.value.extra["errors"]) == ERRORS_AT_MOST
    assert len(read) <= 3
    assert len(source.read(wrong)[1]) == 200 * len(real(broken)[1])


@pytest.mark.parametrize(
    ("paths", "is_wrong"),
    [
        (["a", "a/b"], True),
        (["a/b", "A"], True),
        (["a", "a b", "a-b", "a.b", "a/b/c"], True),
        (["a/b/c", "a/b/d", "x", "A/B"], True),
        (["a", "ab/c", "a.d/e"], False),
        (["a/b", "a/c", "b/a"], False),
    ],
)
def test_a_file_is_no_folder_of_another_whatever_comes_between_them(paths: list[str], *, is_wrong: bool) -> None:
    activity = {"instructions": "Do it.", "files": dict.fromkeys(paths, "")}
    _, errors = blueprint.read({**MANY_FILES, "practiceActivity": activity})
    assert bool(errors) == is_wrong
    assert all("needs it to be a folder" in message for _, message in errors)


async def test_what_the_process_keeps_of_blueprints_is_bounded_by_their_text(
    mina: Learner, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = await mina.plan(*[{**LEARN, "encouragement": f"{n}" * 1000} for n in range(5)])
    monkeypatch.setattr(blueprints, "MOST_TEXT", 3000)
    kept = blueprints.Blueprints()
    async with services.database.connection() as c:
        hashes = [row["blueprint_hash"] for row in await c.fetch(sql.sessions_of, plan["id"])]
        lessons = [await kept.get(c, hash_) for hash_ in hashes]
        again = [await kept.get(c, hash_) for hash_ in reversed(hashes)]
    assert [old is new for old, new in zip(reversed(lessons), again, strict=True)] == [True, True, False, False, False]
