"""`GET /api/v1/blueprint-schema`: what a blueprint may be, for editors and generators. Listed in `web.app`."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import JSONResponse

from codehub.http.access import may
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import blueprint

MEDIA_TYPE = "application/schema+json"
router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(401, 403, 503))


@router.get(
    "/blueprint-schema",
    response_class=JSONResponse,
    responses={200: {"content": {MEDIA_TYPE: {}}, "description": "JSON Schema 2020-12"}},
)
async def blueprint_schema(_caller: Annotated[Principal, may(Action.DOCS_READ)]) -> JSONResponse:
    """The JSON Schema of a session's blueprint."""
    return JSONResponse(blueprint.json_schema(), media_type=MEDIA_TYPE)
