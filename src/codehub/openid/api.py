"""REST about linked logins: `/api/v1/users/{name}/identities`."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from codehub.http import paging, provide
from codehub.http.access import may
from codehub.http.problems import documented
from codehub.openid.model import Identity
from codehub.openid.service import OpenId
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
Name = Annotated[str, Path(description="A user's name.", examples=["mina"])]


class IdentityOut(BaseModel):
    id: str
    provider: str = Field(description="As the settings call it.", examples=["school"])
    issuer: str
    label: str = Field(description="What the provider calls this person.", examples=["mina@school.example"])
    created_at: datetime
    last_used_at: datetime | None


def _identity(identity: Identity) -> IdentityOut:
    return IdentityOut(**{name: getattr(identity, name) for name in IdentityOut.model_fields})


@router.get("/users/{name}/identities", responses=documented(404))
async def list_identities(
    request: Request, caller: Annotated[Principal, may(Action.IDENTITY_LIST)], name: Name
) -> paging.Page[IdentityOut]:
    """Logins of a school or a company that are linked with this account. A person links one on the page `/account`."""
    found = await provide.get(request, OpenId).identities(caller, name)
    return paging.page(found, len(found) or 1, _identity, lambda identity: identity.id)


@router.delete("/users/{name}/identities/{identity_id}", status_code=204, responses=documented(404, 409))
async def remove_identity(
    request: Request, caller: Annotated[Principal, may(Action.IDENTITY_REMOVE)], name: Name, identity_id: str
) -> None:
    """The last way in stays: 409 `LAST_WAY_IN`."""
    await provide.get(request, OpenId).unlink(caller, name, identity_id)
