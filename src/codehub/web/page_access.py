"""Who may open a page or send its form: pages name their action by `may`, as routes of the API by their own.

Used by `dashboard`, `learning` and `player`. A person who is not logged in is led to where it says how to, and back to
the page after that.
"""

from typing import Any

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from codehub.errors import UnauthenticatedError
from codehub.http.access import Names, spend_change, visitor
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import handover


class Page(Names):
    """For a user who is logged in; one who is not, or not any more, is led to where it says how to."""

    async def __call__(self, request: Request) -> Principal:  # type: ignore[override]
        try:
            caller = await visitor(request)
        except UnauthenticatedError:
            caller = None
        if caller is None:
            cookie = handover.page_wanted(request)
            raise HTTPException(303, headers={"Location": "/", **({"set-cookie": cookie} if cookie else {})})
        policy_rules.require_scope(caller, self.action)
        if request.method == "POST":
            await spend_change(request, caller)
        return caller


def may(action: Action) -> Any:
    return Depends(Page(action))
