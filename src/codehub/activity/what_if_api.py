"""`GET /api/v1/admin/ttl/what-if`: what other times to sleep would have done to the last days."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from codehub.activity.what_if import Between
from codehub.activity.what_if_service import MOST_DAYS, MOST_SECONDS, Answer, WhatIf
from codehub.http import provide
from codehub.http.access import may
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.i18n import what_if as said
from codehub.policy.actions import Action
from codehub.policy.model import Principal

router = APIRouter(prefix="/api/v1/admin", tags=["operations"], responses=documented(400, 401, 403, 503))
Seconds = Annotated[int, Query(ge=0, le=MOST_SECONDS, description="Seconds; 0 = never.", examples=[900])]


class BetweenOut(BaseModel):
    low: float
    high: float = Field(description="The same as `low` where history can tell.")


class FiguresOut(BaseModel):
    hours: BetweenOut = Field(description="That workspaces ran, all together.")
    sleeps: BetweenOut = Field(description="Put to sleep because nothing happened.")
    wakes: BetweenOut = Field(description="People who came back to a sleeping workspace, and had to wait.")
    stored: BetweenOut = Field(description="Asleep for long enough to be stored away.")
    restores: BetweenOut = Field(description="People who came back to one that was stored away.")


class WhatIfOut(BaseModel):
    standby_seconds: int
    archive_seconds: int
    since: datetime
    until: datetime
    workspaces: int = Field(description="Which these times are for.")
    others: int = Field(description="Which have times of their own, or live by connections: they are not counted.")
    did: FiguresOut
    would: FiguresOut
    exact: bool = Field(description="Whether history can tell all of it.")
    notes: list[str] = Field(description="What is assumed, in the language that `Accept-Language` asks for.")


@router.get("/ttl/what-if")
async def what_if(
    request: Request,
    caller: Annotated[Principal, may(Action.TTL_WHAT_IF)],
    reader: Reader,
    *,
    standby_seconds: Seconds,
    archive_seconds: Annotated[
        int | None, Query(ge=0, le=MOST_SECONDS, description="Seconds asleep until it is stored away; as set now.")
    ] = None,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="So many days back.")] = 7,
) -> WhatIfOut:
    """Of workspaces that live by the platform's times: had they been these, with people doing what they did."""
    answer = await provide.get(request, WhatIf).ask(caller, standby_seconds, archive_seconds, days)
    return shown(answer, said.notes(reader, answer))


def shown(answer: Answer, notes: list[str]) -> WhatIfOut:
    did, would = (
        FiguresOut(**{name: _between(value) for name, value in vars(figures).items()})
        for figures in (answer.did, answer.would)
    )
    return WhatIfOut(
        standby_seconds=answer.standby_seconds,
        archive_seconds=answer.archive_seconds,
        since=answer.since,
        until=answer.until,
        workspaces=answer.workspaces,
        others=answer.others,
        did=did,
        would=would,
        exact=answer.is_exact,
        notes=notes,
    )


def _between(value: Between) -> BetweenOut:
    return BetweenOut(low=round(value.low, 2), high=round(value.high, 2))
