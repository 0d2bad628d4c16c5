"""Keeping awake from inside a workspace: the token it is given, what may be asked with it, and the socket for that.

The token is good for one run of one workspace and for nothing but this. The Unix socket is bound into every sandbox,
so that a workspace without a network can ask, too. Served by the leader (`wiring.coordinator`).
"""

import asyncio
import contextlib
import json
import os
import pathlib
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from codehub import logs
from codehub.auth.signing import Signer
from codehub.clock import Clock
from codehub.coordinator.leader import Lease
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError
from codehub.workspaces import idle_store, rules
from codehub.workspaces.model import Workspace

log = logs.get()
TOKEN = "CODEHUB_HOLD_TOKEN"  # noqa: S105 (a name)
LONGEST_REQUEST, LONGEST_REASON = 4096, 200
REQUEST_SECONDS = 5.0
AT_ONCE, AT_ONCE_OF_ONE = 64, 8  # connections: in all, and of one workspace where those have users of their own


@dataclass(frozen=True)
class Hold:
    workspace_id: str
    op_id: str  # of the start that this run came from
    seconds: float
    reason: str


def token_for(signer: Signer, w: Workspace) -> str:
    return signer.sign(f"{w.id}.{w.op_id}")


def parse(signer: Signer, line: bytes) -> Hold:
    try:
        said: dict[str, Any] = json.loads(line)
        token, seconds, reason = said["token"], float(said["seconds"]), str(said.get("reason") or "")
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        raise InvalidRequestError("must be an object with token and seconds", field="request") from e
    payload = signer.verify(token) if isinstance(token, str) else None
    id_, dot, op_id = (payload or "").rpartition(".")
    if not dot:
        raise ForbiddenError("this token is not good for holding a workspace")
    if not 0 < seconds < 366 * 86400:
        raise InvalidRequestError("must be more than nothing and less than a year", field="seconds")
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise InvalidRequestError(f"must be at most {LONGEST_REASON} characters on one line", field="reason")
    return Hold(id_, op_id, seconds, reason)


class Holds:
    def __init__(self, lease: Lease, clock: Clock, signer: Signer, max_seconds: int) -> None:
        self._lease = lease
        self._clock = clock
        self._signer = signer
        self._max_seconds = max_seconds
        self._open: Counter[int] = Counter()  # connections by their user

    def provide(self, w: Workspace) -> Mapping[str, str]:
        """What a workspace gets to know at its start."""
        return {TOKEN: token_for(self._signer, w)}

    async def keep_awake(self, hold: Hold) -> datetime:
        """Until when it is: as far as the operator allows."""
        now = self._clock.now()
        until = rules.keep_awake_until(now + timedelta(seconds=hold.seconds), now, self._max_seconds)
        async with self._lease.transaction() as c:
            held = await idle_store.keep_awake(c, hold.workspace_id, hold.op_id, until, hold.reason, now)
        if held is None or held.keep_awake_until is None:
            raise ForbiddenError("this token belongs to a run that is over")
        return held.keep_awake_until

    @contextlib.asynccontextmanager
    async def serving(self, door: pathlib.Path) -> AsyncIterator[None]:
        """Every program may connect; the token decides. A former leader's socket is replaced."""
        await asyncio.to_thread(_make_folder, door.parent)
        server = await asyncio.start_unix_server(self._serve, door, limit=LONGEST_REQUEST)
        await asyncio.to_thread(door.chmod, 0o666)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One workspace cannot take the others' places, nor all of our descriptors: too many are sent away."""
        user = _user_of(writer)
        with contextlib.suppress(ConnectionError, TimeoutError), self._place(user) as free:
            if free:
                async with asyncio.timeout(REQUEST_SECONDS):
                    writer.write(json.dumps(await self._answer(reader)).encode() + b"\n")
                    await writer.drain()
        writer.transport.abort() if not free else writer.close()

    @contextlib.contextmanager
    def _place(self, user: int) -> Iterator[bool]:
        of_one = AT_ONCE if user == os.geteuid() else AT_ONCE_OF_ONE
        if self._open.total() >= AT_ONCE or self._open[user] >= of_one:
            yield False
            return
        self._open[user] += 1
        try:
            yield True
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    async def _answer(self, reader: asyncio.StreamReader) -> dict[str, str]:
        try:
            until = await self.keep_awake(parse(self._signer, await reader.readline()))
        except CodeHubError as e:
            return {"error": e.detail}
        except ValueError:
            return {"error": "the request is too long"}
        return {"until": until.isoformat()}


def _user_of(writer: asyncio.StreamWriter) -> int:
    told = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    user: int = struct.unpack("=iII", told)[1]
    return user


def _make_folder(folder: pathlib.Path) -> None:
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.chmod(0o755)
