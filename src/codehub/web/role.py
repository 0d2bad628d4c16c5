"""`codehub api`: serves the application on an inherited socket, or on one of its own."""

import os
import socket

import uvicorn

from codehub.clock import Clock
from codehub.settings import Settings
from codehub.web.app import create_app
from codehub.wiring import open_services

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


async def run(settings: Settings, clock: Clock, listener: socket.socket) -> None:
    """Until a signal says stop; requests under way are finished, within the bound of the settings."""
    async with open_services(settings, clock) as services:
        config = uvicorn.Config(
            create_app(services),
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.server.drain_seconds),
            h11_max_incomplete_event_size=65536,
        )
        await uvicorn.Server(config).serve(sockets=[listener])


def inherited(fd: int) -> socket.socket:
    listener = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    return listener
