"""Chromium's virtual authenticator, by the DevTools protocol: real ceremonies, without a finger."""

from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession, Page

OPTIONS = {
    "protocol": "ctap2",
    "ctap2Version": "ctap2_1",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@dataclass(frozen=True)
class Device:
    """What a person unlocks, plugged into one page."""

    session: CDPSession
    id: str

    @classmethod
    async def plug_in(cls, page: Page, **options: Any) -> "Device":
        session = await page.context.new_cdp_session(page)
        await session.send("WebAuthn.enable")
        made = await session.send("WebAuthn.addVirtualAuthenticator", {"options": {**OPTIONS, **options}})
        return cls(session, made["authenticatorId"])

    async def passkeys(self) -> list[Any]:
        found = await self.session.send("WebAuthn.getCredentials", {"authenticatorId": self.id})
        return list(found["credentials"])

    async def put(self, passkey: Any) -> None:
        """The same one, as it was copied from another device."""
        await self.session.send("WebAuthn.addCredential", {"authenticatorId": self.id, "credential": passkey})

    async def unlocks(self, *, yes: bool) -> None:
        await self.session.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": yes})
