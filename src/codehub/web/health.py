"""`/healthz` (alive), `/readyz` (can serve), `/metrics`: for probes and Prometheus."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from codehub import metrics
from codehub.db import migrate
from codehub.db.redis import FAILURES, require_writes
from codehub.errors import CodeHubError
from codehub.health import OK
from codehub.http.access import NeedsOperator, names
from codehub.http.problems import documented
from codehub.logs import redact_text
from codehub.policy.actions import Action
from codehub.web.services import Services, services_of

router = APIRouter(tags=["health"])
PROBE_SECONDS = 2.0


class Alive(BaseModel):
    status: Literal["alive"] = "alive"


class Readiness(BaseModel):
    ready: bool
    checks: dict[str, str]


@router.get("/healthz", summary="Is it alive?", dependencies=[names(Action.PUBLIC_HEALTH)])
async def healthz() -> Alive:
    """This process runs and answers. Asks no other process."""
    return Alive()


@router.get(
    "/readyz",
    summary="Can it serve?",
    responses={503: {"model": Readiness, "description": "Something it needs is away."}},
    dependencies=[names(Action.PUBLIC_HEALTH)],
)
async def readyz(request: Request, response: Response) -> Readiness:
    """Says what is missing, if anything."""
    checks = await what_it_needs(services_of(request))
    ready = all(said == OK for said in checks.values())
    response.status_code = 200 if ready else 503
    return Readiness(ready=ready, checks=checks)


async def what_it_needs(services: Services) -> dict[str, str]:
    """By server: "ok", or what is wrong with it."""
    results = await asyncio.gather(_database(services), _redis(services))
    return dict(zip(("database", "redis"), results, strict=True))


async def _database(services: Services) -> str:
    database = services.database
    try:
        async with asyncio.timeout(PROBE_SECONDS), database.connection() as c:
            await migrate.require_current(c)
    except TimeoutError:
        await database.expire_connections()
        return "no answer in time"
    except CodeHubError as e:
        return redact_text(e.detail)
    return OK


async def _redis(services: Services) -> str:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await require_writes(services.redis)
    except TimeoutError:
        return "no answer in time"
    except FAILURES as e:
        return redact_text(str(e))
    return OK


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **documented(401, 403)},
    dependencies=[Depends(NeedsOperator(Action.METRICS_READ))],
)
async def prometheus() -> Response:
    """For this machine, for the networks in `CODEHUB_METRICS_NETWORKS`, and for admins."""
    content, media_type = metrics.render()
    return Response(content, headers={"content-type": media_type})
