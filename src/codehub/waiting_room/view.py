"""How the API describes a status (`status` makes it), and what is counted of an event; pages count with it, too."""

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from codehub.waiting_room.events import EventView
from codehub.waiting_room.status import WAITING


class StatusOut(BaseModel):
    status: str = Field(WAITING, description="Always `waiting`; the other fields say the rest.", examples=[WAITING])
    position: int | None = Field(description="1: the first. Null before a lottery opens.", examples=[7])
    eta_sec: int | None = Field(description="Null: there is no end to be told, while it is paused.", examples=[14])
    eta_low_sec: int = Field(examples=[10])
    eta_high_sec: int | None = Field(examples=[30])
    waiting_time: int = Field(description="Seconds since they joined.", examples=[15])
    ready_for_entry: bool
    poll_after_ms: int = Field(description="When to ask next.", examples=[2000])
    paused: bool
    passed: bool = Field(description="An offer was not taken in time; `join` makes one live again.")
    opens_at: datetime | None = Field(description="Where that lies ahead.")
    offer_expires_at: datetime | None = Field(description="Until when to enter, once it is their turn.")
    offer_sec: int | None = Field(description="The same in seconds from now.")
    waiting_token: str = Field(description="To go on with: the same, unless another token of this person counts.")


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def inside(view: EventView) -> int:
    """Places in use. Of `lab` it is what runs: who entered there and started something is counted so."""
    return view.running + view.used.held


def free(view: EventView) -> int | None:
    """None: there is no limit."""
    if view.capacity is None:
        return None
    return max(0, view.capacity - inside(view) - view.used.reserved - view.used.offered)
