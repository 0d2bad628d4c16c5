"""`codehub api`: serves the application on an inherited socket, or on one of its own; and for a single command."""

import asyncio
import functools
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace

import uvicorn
from fastapi import FastAPI

from codehub import logs
from codehub.clock import Clock
from codehub.courses import installation
from codehub.db import migrate
from codehub.embedded.servers import reachable, resolve
from codehub.settings import Settings
from codehub.web import guard, operator_door
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


async def run(
    settings: Settings, clock: Clock, listeners: list[socket.socket], operators: Sequence[socket.socket] = ()
) -> None:
    """Until a signal says stop; requests under way are finished, within the bound of the settings.

    `operators`: sockets whose clients are the operator.
    """
    async with open_services(settings, clock) as services:
        services.hub.start()
        installing = asyncio.create_task(installation.run(services.courses))
        try:
            await Server(server_config(create_app(services), settings), services, operators).serve(sockets=listeners)
        finally:
            installing.cancel()
            await asyncio.gather(installing, return_exceptions=True)


async def run_for_command(
    settings: Settings, clock: Clock, listener: socket.socket, caller: socket.socket, ready: Callable[[], None]
) -> None:
    """For a command while nothing serves here: servers and API, until the command closes its end of `caller`."""
    async with reachable(settings) as urls:
        if settings.storage.database_url is None:
            await migrate.migrate(urls.database)
        # The command says what came of it; what else there is to say are warnings.
        level = "warning" if settings.log.level == "info" else settings.log.level
        logs.configure(replace(settings.log, level=level), "api")
        async with open_services(resolve(settings, urls), clock) as services:
            server = Server(server_config(create_app(services), settings), services, [listener])
            serving = asyncio.create_task(server.serve(sockets=[]))
            ready()
            await asyncio.get_running_loop().sock_recv(caller, 1)
            server.should_exit = True
            await serving


class Server(uvicorn.Server):
    """Ends event streams first: they have no end of their own to wait for."""

    def __init__(self, config: uvicorn.Config, services: Services, operators: Sequence[socket.socket] = ()) -> None:
        super().__init__(config)
        self._services = services
        self._operators = operators

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in self._operators:
            made = functools.partial(
                operator_door.protocol_for(listener, self._services.settings.server.head_seconds),
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )
            opened = await asyncio.get_running_loop().create_server(made, sock=listener, backlog=BACKLOG)
            self.servers.append(opened)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._services.hub.stop()
        await self._services.waiting_streams.stop()
        await super().shutdown(sockets)
