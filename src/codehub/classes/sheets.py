"""A sheet of login links for a class, one for each learner whose account its teachers look after. Called by pages."""

from dataclasses import dataclass, field

from codehub.auth.service import LoginLink, People
from codehub.classes.service import Classes
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal

MOST = 1000


@dataclass(frozen=True)
class Slip:
    name: str
    display_name: str
    link: LoginLink = field(repr=False)


class Sheets:
    def __init__(self, classes: Classes, people: People) -> None:
        self._classes = classes
        self._people = people

    async def make(self, caller: Principal, class_id: str) -> list[Slip]:
        """New links each time: earlier ones that were not used stop working. Shown once."""
        await self._classes.require(caller, class_id, Action.CLASS_MANAGE)
        members = await self._classes.members(caller, class_id, after="", limit=MOST)
        slips = []
        for member in members:
            looked_after = policy.allows(caller, Action.LOGIN_LINK_CREATE, policy.account(member.name))
            if member.teaches or not member.active or not looked_after:
                continue
            link = await self._people.make_login_link(caller, member.name)
            slips.append(Slip(member.name, member.display_name or member.name, link))
        return slips
