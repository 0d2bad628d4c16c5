"""`codehub api`: serves the application on an inherited socket, or on one of its own; and for a single command."""

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from codehub import logs, peers
from codehub.clock import Clock
from codehub.courses import installation
from codehub.db import migrate
from codehub.embedded.servers import reachable, resolve
from codehub.health import Health
from codehub.settings import Settings
from codehub.web import guard, operator_door, peer_door
from codehub.web.app import create_app
from codehub.web.guard import GuardedProtocol
from codehub.web.health import what_it_needs
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


@dataclass(frozen=True)
class Listeners:
    public: Sequence[socket.socket] = ()  # of a front door on this machine, or of everybody
    operators: Sequence[socket.socket] = ()  # their clients are the operator
    peers: Sequence[socket.socket] = ()  # of front doors elsewhere
    probed: Sequence[socket.socket] = ()  # of probes


async def run(settings: Settings, clock: Clock, listeners: Listeners) -> None:
    """Until a signal says stop; requests under way are finished, within the bound of the settings."""
    async with open_services(settings, clock) as services:
        if not listeners.operators:  # nobody else makes the first admin: `serve` does it itself
            await services.people.ensure_first_admin()
        services.hub.start()
        installing = asyncio.create_task(installation.run(services.courses))
        try:
            server = Server(server_config(create_app(services), settings), services, listeners)
            async with server.health.serving(listeners.probed):
                await server.serve(sockets=list(listeners.public))
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
            server = Server(server_config(create_app(services), settings), services, Listeners(operators=[listener]))
            serving = asyncio.create_task(server.serve(sockets=[]))
            ready()
            await asyncio.get_running_loop().sock_recv(caller, 1)
            server.should_exit = True
            await serving


class Server(uvicorn.Server):
    """Ends event streams first: they have no end of their own to wait for."""

    def __init__(self, config: uvicorn.Config, services: Services, listeners: Listeners) -> None:
        super().__init__(config)
        self.health = Health(services.settings.server.metrics_networks, functools.partial(what_it_needs, services))
        self._services = services
        self._listeners = listeners
        self._leave_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        seconds = self._services.settings.server.head_seconds
        for listener in self._listeners.operators:
            await self._listen(listener, operator_door.protocol_for(listener, seconds))
        if self._listeners.peers:
            key = self._services.settings.auth.secret_key
            assert key  # noqa: S101 (`open_services` asks for it)
            ours = peers.of(key)
            for listener in self._listeners.peers:
                await self._listen(listener, peer_door.protocol_with(seconds), ours.server)

    async def _listen(
        self, listener: socket.socket, protocol: type[GuardedProtocol], tls: ssl.SSLContext | None = None
    ) -> None:
        made = functools.partial(
            protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        secure: dict[str, Any] = {"ssl": tls, "ssl_handshake_timeout": peers.HANDSHAKE_SECONDS} if tls else {}
        opened = await asyncio.get_running_loop().create_server(made, sock=listener, backlog=BACKLOG, **secure)
        self.servers.append(opened)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """With others to go to, clients get time for it: each connection ends with its next answer."""
        seconds = self._services.settings.roles.leave_seconds
        if not seconds or self._leave_at is not None:
            super().handle_exit(sig, frame)
            return
        self._leave_at = self._services.clock.monotonic() + seconds
        self.health.leaving = True
        self.config.encoded_headers.append((b"connection", b"close"))

    async def on_tick(self, counter: int) -> bool:
        if self._leave_at is not None and self._services.clock.monotonic() >= self._leave_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._services.hub.stop()
        await self._services.waiting_streams.stop()
        await super().shutdown(sockets)
