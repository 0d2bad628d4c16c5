"""The courses that come with the product, taken by a robot on a whole platform: every step and every mistake."""

from collections.abc import Iterator

import pytest

from tests.courses.robot import Robot
from tests.courses.test_shipped import SHIPPED
from tests.platform import Platform
from tests.sessions.practice_lab import pupil
from tests.workspaces.test_lifecycle import lab

COURSES = [(name, language) for name in ("python-for-beginners", "git") for language in ("en", "ko")]


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """Its workspaces have a small server instead of an IDE: what a course needs is the home and the shell.

    Requests wait for checks a shorter time than the tests' client waits for an answer.
    """
    with lab(CODEHUB_PRACTICE_TEMPLATE="tiny", CODEHUB_PRACTICE_WAIT_SECONDS="15") as started:
        yield started


async def test_one_session_can_be_learnt_and_only_by_doing_it_right(platform: Platform) -> None:
    async with pupil(platform) as learner:
        robot = Robot(learner, SHIPPED / "python-for-beginners" / "en")
        await robot.take(only=["hello"])
    assert robot.passed == 4
    assert robot.failed >= 3


@pytest.mark.soak
@pytest.mark.parametrize(("name", "language"), COURSES)
async def test_a_whole_course_can_be_learnt_and_only_by_doing_it_right(
    platform: Platform, name: str, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with pupil(platform) as learner:
        robot = Robot(learner, SHIPPED / name / language)
        await robot.take()
    with capsys.disabled():
        print(f"\n{name}/{language}: {robot.passed} steps passed, {robot.failed} attempts refused as they should be")
