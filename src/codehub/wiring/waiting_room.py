"""The waiting room's part of the composition root, for the processes that serve people."""

from dataclasses import dataclass

from codehub.clock import Clock
from codehub.db import Database
from codehub.db.redis import Client
from codehub.settings import Settings
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.events import Events
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.line import Line
from codehub.waiting_room.service import WaitingRoom
from codehub.waiting_room.stream import WaitingStreams
from codehub.waiting_room.tokens import Tokens


@dataclass(frozen=True)
class WaitingRoomParts:
    line: Line
    room: WaitingRoom
    events: Events
    streams: WaitingStreams
    lab: Lab


def build(settings: Settings, database: Database, client: Client, clock: Clock, key: str) -> WaitingRoomParts:
    """Who builds it closes the line."""
    config = settings.queue
    line = Line(client, clock, config)
    epochs = Epochs(database, line, clock, config)
    tokens = Tokens(key)
    room = WaitingRoom(database, clock, config, line, tokens, epochs)
    return WaitingRoomParts(
        line,
        room,
        Events(database, clock, config, settings.limits, line, epochs),
        WaitingStreams(room, line, tokens, clock, config),
        Lab(clock, tokens),
    )
