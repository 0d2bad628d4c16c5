"""What a person is told of their turn, on all pages that they have open: events for the outbox. Positions are not."""

from collections.abc import Sequence

from codehub.events import model as events
from codehub.events.model import Event
from codehub.waiting_room.model import Place

NO_ACCOUNT = "="  # before the name of a person for whom an admin joined, and who has no account


def ready(event_id: str, person: str) -> Event:
    return Event(events.user(person), "queue_ready", event_id, {"event_id": event_id})


def entered(place: Place) -> Sequence[Event]:
    if place.person is None or place.person.startswith(NO_ACCOUNT):
        return []
    return [Event(events.user(place.person), "queue_entered", place.event_id, {"event_id": place.event_id})]
