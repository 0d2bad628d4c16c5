"""A signed link that lets one click on a workspace's own origin join the line on the platform's. Pure but for the time.

`entry_pages` puts it on the page that says "all places are taken"; `waiting` reads it. It is good for one person and
workspace and for an hour, and does nothing but join.
"""

from urllib.parse import urlencode

from codehub.auth.signing import Signer
from codehub.clock import Clock
from codehub.waiting_room.model import LAB

GOOD_SECONDS = 3600


class WaitTickets:
    def __init__(self, secret_key: str, clock: Clock) -> None:
        self._signer = Signer(secret_key, "wait-ticket")
        self._clock = clock

    def link(self, person: str, workspace: str) -> str:
        until = int(self._clock.timestamp()) + GOOD_SECONDS
        ticket = self._signer.sign(f"{person}.{workspace}.{until}")
        return f"/wait/{LAB}?{urlencode({'workspace': workspace, 'ticket': ticket})}"

    def is_good(self, ticket: str, person: str, workspace: str) -> bool:
        signed_for, _, until = (self._signer.verify(ticket) or "").rpartition(".")
        return signed_for == f"{person}.{workspace}" and int(until) > self._clock.timestamp()
