"""The section of `/account` about one's logins of a school or company."""

from dataclasses import dataclass

from starlette.requests import Request

from codehub.policy.model import Principal
from codehub.settings.openid import Provider
from codehub.web.services import services_of


@dataclass(frozen=True)
class Linked:
    id: str
    title: str
    label: str
    is_working: bool  # its provider is configured


@dataclass(frozen=True)
class Section:
    linked: list[Linked]
    open: list[Provider]  # not linked yet


async def section(request: Request, caller: Principal) -> Section | None:
    """None: there are no such logins here."""
    openid = services_of(request).openid
    linked = await openid.identities(caller, caller.name)
    if not linked and not openid.providers:
        return None
    titles = {provider.issuer: provider.shown for provider in openid.providers}
    issuers = {identity.issuer for identity in linked}
    return Section(
        [Linked(i.id, titles.get(i.issuer, i.provider), i.label, i.issuer in titles) for i in linked],
        [provider for provider in openid.providers if provider.issuer not in issuers],
    )
