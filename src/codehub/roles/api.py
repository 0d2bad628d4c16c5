"""`codehub api`: serves the application on an inherited socket, or on one of its own."""

import socket

import uvicorn
from fastapi import FastAPI

from codehub.clock import Clock
from codehub.settings import Settings
from codehub.web import guard
from codehub.web.app import create_app
from codehub.web.services import Services
from codehub.wiring.api import open_services

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=guard.bounded_by(settings.server.head_seconds),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.server.drain_seconds),
        backlog=BACKLOG,
    )


async def run(settings: Settings, clock: Clock, listeners: list[socket.socket]) -> None:
    """Until a signal says stop; requests under way are finished, within the bound of the settings."""
    async with open_services(settings, clock) as services:
        services.hub.start()
        await Server(server_config(create_app(services), settings), services).serve(sockets=listeners)


class Server(uvicorn.Server):
    """Ends event streams first: they have no end of their own to wait for."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._services.hub.stop()
        await super().shutdown(sockets)
