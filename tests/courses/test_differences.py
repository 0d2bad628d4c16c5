"""What is different between two versions of a course."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.courses import differences, source
from codehub.courses.differences import Change, Difference, Kind
from tests.sessions.blueprints import FULL, SMALLEST

BASE = {"key": "c", "title": "Course", "language": "en"}


def course(*sessions: dict[str, Any], **head: Any) -> source.Source:
    return source.parse({**BASE, **head, "sessions": list(sessions)})


def session(key: str, blueprint: Any = SMALLEST, **more: Any) -> dict[str, Any]:
    return {"key": key, "title": key.title(), "day": 1, "blueprint": blueprint, **more}


def detail(old: Any, new: Any) -> list[tuple[str, Kind, str, int]]:
    found = differences.compare(course(session("a", old)), course(session("a", new)))
    return [(c.what, c.kind, c.name, c.n) for s in found.sessions for c in s.details]


def test_the_same_is_no_difference() -> None:
    assert not differences.compare(course(session("a", FULL)), course(session("a", FULL)))
    assert differences.compare(course(session("a")), course(session("a"))) == Difference((), ())


def test_sessions_come_go_change_and_move() -> None:
    old = course(session("a"), session("b"), session("c"), session("d"))
    new = course(session("c"), session("a", day=3), session("x"), session("b"), title="Other")
    found = differences.compare(old, new)
    assert found.head == (Change("title", Kind.CHANGED, old="Course", new="Other"),)
    assert [(s.key, s.kind, s.is_moved) for s in found.sessions] == [
        ("c", Kind.MOVED, True),
        ("a", Kind.CHANGED, False),
        ("x", Kind.ADDED, False),
        ("d", Kind.REMOVED, False),
    ]
    assert found.sessions[1].details == (Change("day", Kind.CHANGED, old="1", new="3"),)


def test_steps_pages_and_words_of_a_session_are_told_apart() -> None:
    pages = {"learningContent": ["one", "two", "three"]}
    old = {**SMALLEST, "steps": ["LEARN", "COMPLETE"], **pages}
    new = {**SMALLEST, "steps": ["LEARN", "LEARN", "COMPLETE"], "learningContent": ["one", "TWO"], "encouragement": "!"}
    assert detail(old, new) == [
        ("step", Kind.ADDED, "LEARN", 1),
        ("page", Kind.REMOVED, "", 1),
        ("page", Kind.CHANGED, "", 1),
        ("encouragement", Kind.CHANGED, "", 1),
    ]
    assert detail(old, {**old, "learningContent": ["two", "one", "three"]}) == [("page", Kind.MOVED, "", 1)]


def test_questions_files_and_checks_are_named() -> None:
    activity = {**FULL["practiceActivity"], "files": {"new.txt": "x"}, "instructions": "Other."}
    new = {**FULL, "practiceActivity": activity, "checkQuestions": FULL["checkQuestions"][1:]}
    found = detail(FULL, new)
    gone = FULL["checkQuestions"][0]["id"]
    assert ("question", Kind.REMOVED, gone, 1) in found
    assert ("instructions", Kind.CHANGED, "", 1) in found
    assert ("file", Kind.ADDED, "new.txt", 1) in found
    without = {**FULL, "steps": ["LEARN", "CHECK", "COMPLETE"], "practiceActivity": None}
    assert ("practice", Kind.REMOVED, "", 1) in detail(FULL, without)


@given(st.permutations(list("abcdefgh")))
def test_what_was_not_moved_is_in_its_old_order(new: list[str]) -> None:
    old = sorted(new)
    moved = differences.out_of_order(old, new)
    kept = [name for name in new if name not in moved]
    assert kept == sorted(kept)
    assert bool(moved) == (old != new)


@pytest.mark.parametrize(("new", "moved"), [("bcda", "a"), ("dabc", "d"), ("abcd", ""), ("abdc", "d")])
def test_as_few_as_possible_were_moved(new: str, moved: str) -> None:
    assert differences.out_of_order("abcd", new) == list(moved)
