"""How long the waiting room waits for whom. A group of the settings; used by `waiting_room`."""

from dataclasses import dataclass

from codehub.settings.fields import at_least, between, setting


@dataclass(frozen=True)
class QueueConfig:
    offer_seconds: float = setting(
        "QUEUE_OFFER_SECONDS",
        60.0,
        "Seconds to enter, from when a waiting person is first told that it is their turn; then the next one gets it.",
        check=between(1, 86400),
    )
    heartbeat_seconds: int = setting(
        "QUEUE_HEARTBEAT_SECONDS",
        300,
        "A waiting person who is not heard of for so many seconds loses the place in line.",
        check=between(2, 86400),
    )
    silent_seconds: float = setting(
        "QUEUE_SILENT_SECONDS",
        90.0,
        "A waiting person who is not heard of for so many seconds keeps the place in line, but is offered none; more "
        "than the minute in which browsers let a hidden page ask once.",
        check=between(1, 86400),
    )
    waiting_seconds: int = setting(
        "QUEUE_WAITING_SECONDS",
        1800,
        "Seconds that Redis keeps what is known of a waiting person after they were last heard of.",
        check=between(2, 7 * 86400),
    )
    event_seconds: int = setting(
        "QUEUE_EVENT_SECONDS",
        3600,
        "Seconds that Redis keeps the line of an event after it was last used.",
        check=between(2, 7 * 86400),
    )
    reservation_seconds: int = setting(
        "QUEUE_RESERVATION_SECONDS",
        300,
        "Seconds to start a workspace or a session with the place that was entered; then it goes to the next one.",
        check=at_least(1),
    )

    max_events_per_user: int = setting(
        "QUEUE_MAX_EVENTS_PER_USER",
        10,
        "Events that one person may have made: learners make none, teachers ten times as many, admins any number; "
        "0 = no limit.",
        check=at_least(0),
    )

    streams: int = setting(
        "QUEUE_STREAMS",
        8000,
        "Open streams of waiting people in an API process; more of them poll instead. Each needs a connection here and "
        "two at the front door. 0 = no limit.",
        check=at_least(0),
    )

    def complaints(self) -> list[str]:
        """What does not go together, a line for each."""
        longer = (
            ("QUEUE_HEARTBEAT_SECONDS", self.heartbeat_seconds, "QUEUE_SILENT_SECONDS", self.silent_seconds),
            ("QUEUE_WAITING_SECONDS", self.waiting_seconds, "QUEUE_HEARTBEAT_SECONDS", self.heartbeat_seconds),
            ("QUEUE_EVENT_SECONDS", self.event_seconds, "QUEUE_HEARTBEAT_SECONDS", self.heartbeat_seconds),
        )
        return [
            f"{name}={value:g}: must be more than {other}, which is {least:g}"
            for name, value, other, least in longer
            if value <= least
        ]
