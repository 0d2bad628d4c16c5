"""`GET /api/v1/templates`: what workspaces can be made from, and what is missing for those that cannot."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from codehub.http import provide
from codehub.http.access import may
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import Settings
from codehub.templates.loader import Templates

router = APIRouter(prefix="/api/v1", tags=["workspaces"], responses=documented(401, 403, 503))


class TemplateOut(BaseModel):
    name: str
    title: str = Field(description="In the language that `Accept-Language` asks for; so is `description`.")
    description: str
    starter_files: list[str] = Field(description="Paths of the files that a new home begins with.")
    available: bool
    unavailable_reason: str | None
    activity_profile: str
    activity: str


class TemplatesOut(BaseModel):
    items: list[TemplateOut]
    next_cursor: None = None


@router.get("/templates")
async def list_templates(
    request: Request, _caller: Annotated[Principal, may(Action.TEMPLATE_LIST)], reader: Reader
) -> TemplatesOut:
    """All of them: there are few, so there is one page."""
    templates, mode = provide.get(request, Templates), provide.get(request, Settings).activity.mode
    items = []
    for template in templates.all():
        reason = templates.unavailable(template.name)
        items.append(
            TemplateOut(
                name=template.name,
                title=template.title_in(reader.language),
                description=template.description_in(reader.language),
                starter_files=[file.path for file in template.starter_files],
                available=reason is None,
                unavailable_reason=reason,
                activity_profile=template.activity_profile,
                activity=template.activity or mode,
            )
        )
    return TemplatesOut(items=items)
