"""Which of the first steps are done, read from what there is. Used by `first_steps`, and by the start page."""

from dataclasses import dataclass

from fastapi import Request

from codehub.classes.model import SchoolClass
from codehub.http import paging
from codehub.policy.model import Principal
from codehub.sessions.model import Plan
from codehub.web import classes_view
from codehub.web import first_steps_rules as rules
from codehub.web.first_steps_rules import Step
from codehub.web.services import services_of
from codehub.workspaces.model import Workspace
from codehub.workspaces.service import Filters

FIRST = paging.place(None)
CLASSES = 20  # that are looked at for one with an invitation


@dataclass(frozen=True)
class Found:
    """What there is of this person: that is what is done."""

    has_way_in: bool
    workspace: Workspace | None
    plan: Plan | None
    school_class: SchoolClass | None
    invitation: classes_view.Invited | None

    @property
    def done(self) -> frozenset[Step]:
        there = {
            Step.WAY_IN: self.has_way_in,
            Step.WORKSPACE: self.workspace is not None,
            Step.COURSE: self.plan is not None,
            Step.CLASS: self.invitation is not None,
        }
        return frozenset(step for step, is_there in there.items() if is_there)


async def find(request: Request, caller: Principal) -> Found:
    services = services_of(request)
    workspaces = await services.workspaces.page(caller, Filters(caller.name), after=FIRST, limit=1)
    plans = await services.sessions.plans(caller, owner=caller.name, after=FIRST, limit=1)
    mine = await services.classes.page(caller, everybodys=False, archived=False, after=FIRST, limit=CLASSES)
    reader = classes_view.Reader(request, caller)
    invited = [(k, i) for k in mine if (i := await reader.invitation(k.id, None))]
    school_class, invitation = invited[0] if invited else (mine[0] if mine else None, None)
    return Found(
        await services.people.has_way_in(caller),
        workspaces[0] if workspaces else None,
        plans[0] if plans else None,
        school_class,
        invitation,
    )


async def reminder(request: Request, caller: Principal) -> tuple[int, int] | None:
    """For the start page: how many of how many are done; None: nothing is left, or it is not shown to this person."""
    if not await services_of(request).first_steps.is_open(caller):
        return None
    done = (await find(request, caller)).done
    return None if rules.is_over(done) else (len(done), len(Step))
