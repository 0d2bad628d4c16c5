"""A class for the gallery of pages: its teacher, people who do things, a code; and one with nothing in it."""

from dataclasses import dataclass

from codehub.classes.model import MemberRole
from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.services import Services

TEACHER = "kim"


@dataclass(frozen=True)
class School:
    class_id: str
    empty_id: str
    archived_id: str
    code: str

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
    return School(made.id, empty.id, archived.id, invitation.code)


async def _token(services: Services) -> str:
    made = await services.people.create_token(operator(), TEACHER, label="", scopes=None, days=None)
    return made.secret
