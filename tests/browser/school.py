"""A class for the gallery of pages: its teacher, people who do things, a code; and one with nothing in it."""

import importlib.resources
from dataclasses import dataclass

from codehub.classes.model import MemberRole
from codehub.command import operator
from codehub.courses import folder
from codehub.courses.tree import Problem
from codehub.policy.model import Principal, Role
from codehub.web.services import Services

TEACHER = "kim"


@dataclass(frozen=True)
class School:
    class_id: str
    empty_id: str
    archived_id: str
    code: str
    course_id: str
    draft_id: str

    def for_strangers(self) -> dict[str, str]:
        return {"join": "/join", "join-wrong": "/join/BBBBBB", "join-who": f"/join/{self.code}"}

    def for_a_learner(self) -> dict[str, str]:
        return {
            "learner-classes": "/classes",
            "learner-class": f"/classes/{self.class_id}?done=joined",
            "join-as": f"/join/{self.code}",
        }

    def for_a_teacher(self) -> dict[str, str]:
        return {
            "classes": "/classes",
            "class": f"/classes/{self.class_id}?problem=LAST_TEACHER",
            "class-empty": f"/classes/{self.empty_id}",
            "class-archived": f"/classes/{self.archived_id}?done=archive",
            "class-import": f"/classes/{self.class_id}/import",
            "class-sheet": f"/classes/{self.class_id}/sheet",
            "class-person": f"/classes/{self.class_id}/people/gimseoyeon",
            "wall": f"/classes/{self.class_id}/wall",
            "wall-none": f"/classes/{self.empty_id}/wall",
            "join-teacher": f"/join/{self.code}",
            **self.courses(),
        }

    def courses(self) -> dict[str, str]:
        course, draft = f"/courses/{self.course_id}", f"/courses/drafts/{self.draft_id}"
        return {
            "courses": "/courses",
            "course": f"{course}?problem=STARTS_ON&at=assign&starts_on=soon",
            "course-version": f"{course}/versions/2",
            "course-import": f"/courses/import?course={self.course_id}",
            "course-draft": draft,
            **{f"course-preview-{step}": f"{draft}/preview/hello?step={step}" for step in range(4)},
        }


async def open_school(services: Services, learners: list[str]) -> School:
    await services.people.create_user(operator(), TEACHER, Role.TEACHER)
    await services.people.create_user(operator(), "lee", Role.TEACHER)
    kim = await services.credentials.by_token(await _token(services))
    made = await services.classes.create(
        kim, "월요일 파이썬: Functions, recursion and other things that repeat themselves"
    )
    for name in learners:
        await services.classes.add_member(kim, made.id, name, MemberRole.LEARNER)
    await services.importing.make_person(kim, made.id, "김서연", None)
    await services.classes.add_member(kim, made.id, "lee", MemberRole.TEACHER)
    await services.invitations.create(kim, made.id, max_uses=40)
    invitation = await services.invitations.create(kim, made.id)
    empty = await services.classes.create(kim, "Empty")
    archived = await services.classes.create(kim, "Last year's")
    await services.classes.change(kim, archived.id, archived=True)
    course_id, draft_id = await write_courses(services, kim)
    return School(made.id, empty.id, archived.id, invitation.code, course_id, draft_id)


async def write_courses(services: Services, kim: Principal) -> tuple[str, str]:
    """One with two versions, and a third that is not saved yet."""
    with importlib.resources.as_file(importlib.resources.files("codehub.courses") / "example" / "ko") as example:
        first = folder.load(example)
    hello = first.sessions[0]
    longer = hello.model_copy(update={"key": "more", "title": f"{'아주 ' * 20}긴 제목", "day": 3})
    second = first.model_copy(update={"title": "나의 강의: 둘째 판", "sessions": (hello, longer)})
    changed = hello.model_copy(
        update={
            "title": "Other",
            "blueprint": hello.blueprint.model_copy(
                update={"learning_content": ("# A", "# B"), "check_questions": hello.blueprint.check_questions[:1]}
            ),
        }
    )
    added = longer.model_copy(update={"key": "new", "title": "New"})
    made = (await services.courses.create(kim, first)).course.id
    await services.courses.change(kim, made, second)
    third = second.model_copy(update={"sessions": (added, changed)})
    warned = Problem("01-hello/session.md", 12, "raw HTML, which is shown as it is written: <b>", is_error=False)
    return made, await services.course_drafts.keep(kim, third, [warned])


async def _token(services: Services) -> str:
    made = await services.people.create_token(operator(), TEACHER, label="", scopes=None, days=None)
    return made.secret
