"""`/account`: who one is to others, one's ways in, devices and tokens.

The page is made of sections, each with a view function and a partial template of its own (`account_NAME.html`, which
finds what the function returned as `s`). Forms are ordinary POSTs below `/do/account/`, answered by `back_to`: what was
refused, and what was done, is told by the address and said in the section that it is about.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import (
    account_devices,
    account_passkeys,
    account_password,
    account_profile,
    account_providers,
    account_tokens,
)
from codehub.web.account_sections import said_of
from codehub.web.page_access import may
from codehub.web.rendering import render

router = APIRouter(include_in_schema=False)
View = Callable[[Request, Principal], Awaitable[Any]]
# In the order of the page. A section whose function returns None is not shown.
SECTIONS: Mapping[str, View] = {
    "profile": account_profile.section,
    "password": account_password.section,
    "passkeys": account_passkeys.section,
    "providers": account_providers.section,
    "devices": account_devices.section,
    "tokens": account_tokens.section,
}


@router.get("/account")
async def show(request: Request, caller: Annotated[Principal, may(Action.USER_SEE)]) -> Response:
    shown = {name: await view(request, caller) for name, view in SECTIONS.items()}
    sections = {name: found for name, found in shown.items() if found is not None}
    return render(request, "account.html", caller=caller, sections=sections, said=said_of(request))
