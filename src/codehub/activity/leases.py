"""Who is connected now. A connection is the lease of a proxy instance: renewed while that lives, gone with it.

`recorder` tells of tunnels that open and close; what changed is written at once, coalesced over one turn of the loop.
The scripts keep `ws_conn:{id}` and `idle_timer:{id}` from it.
"""

import msgspec

from codehub.activity import keys, scripts
from codehub.activity.buffer import CHUNK, milliseconds
from codehub.activity.model import Watched
from codehub.clock import Clock
from codehub.db.redis import Client
from codehub.templates.model import ActivityMode


class Leases:
    """Of one proxy instance."""

    def __init__(self, client: Client, clock: Clock, instance: str, lease_seconds: float) -> None:
        self._client = client
        self._at = scripts.place(client)
        self._clock = clock
        self._instance = instance
        self._lease_ms = int(lease_seconds * 1000)
        self._open: dict[str, tuple[int, Watched]] = {}
        self._changed: dict[str, tuple[Watched, bool]] = {}  # with whether an HTTP request restarts the timer
        self._epoch: str | None = None

    @property
    def changed(self) -> bool:
        return bool(self._changed)

    def connected(self) -> list[Watched]:
        """The workspaces that are active because a client is connected."""
        return [watched for _, watched in self._open.values() if watched.mode is ActivityMode.CONNECTIONS]

    def opened(self, watched: Watched) -> None:
        count, _ = self._open.get(watched.workspace_id, (0, watched))
        self._open[watched.workspace_id] = (count + 1, watched)
        self._note(watched)

    def closed(self, watched: Watched) -> None:
        count, _ = self._open.get(watched.workspace_id, (1, watched))
        if count > 1:
            self._open[watched.workspace_id] = (count - 1, watched)
        else:
            self._open.pop(watched.workspace_id, None)
        self._note(watched)

    def visited(self, watched: Watched) -> None:
        """By an HTTP request. Where a connection is open there is no timer to restart."""
        if watched.workspace_id not in self._open:
            self._changed[watched.workspace_id] = (watched, True)

    def _note(self, watched: Watched) -> None:
        restart = self._changed.get(watched.workspace_id, (watched, False))[1]
        self._changed[watched.workspace_id] = (watched, restart)

    async def write(self) -> None:
        """What changed since the last time; kept when Redis does not answer."""
        changed, self._changed = self._changed, {}
        try:
            await self._set(changed)
        except BaseException:
            self._changed = changed | self._changed
            raise

    async def _set(self, changed: dict[str, tuple[Watched, bool]]) -> None:
        entries = [
            (id_, self._open.get(id_, (0, None))[0], _timer_seconds(watched), int(restart))
            for id_, (watched, restart) in changed.items()
        ]
        for begin in range(0, len(entries), CHUNK):
            packed = msgspec.msgpack.encode(entries[begin : begin + CHUNK])
            await self._run("set", self._instance, packed)

    async def renew(self, flushed_ms: int, round_: int) -> bool:
        """Go on living, and say how far everything has been flushed. False: Redis had forgotten us."""
        known, epoch = await self._run("renew", self._instance, self._lease_ms, f"{flushed_ms}:{round_}")
        lost = not known or (self._epoch is not None and epoch.decode() != self._epoch)
        first, self._epoch = self._epoch is None, epoch.decode()
        if lost and self._open:
            await self._set({id_: (watched, False) for id_, (_, watched) in self._open.items()})
        return first or not lost

    async def leave(self) -> None:
        await self._run("leave", self._instance)

    async def asked(self, before: int) -> tuple[int, set[str]] | None:
        """The round we are in, and who is about to sleep in it. None: it is the same as before."""
        if int(await self._client.get(self._at + keys.ROUND) or 0) == before:
            return None
        round_, ids = await scripts.run(self._client, "rounds", "asked")
        return round_, {id_.decode() for id_ in ids}

    async def _run(self, what: str, *arguments: str | bytes | int) -> list[bytes]:
        now = milliseconds(self._clock.now())
        found: list[bytes] = await scripts.run(self._client, "connections", what, now, *arguments)
        return found


def _timer_seconds(watched: Watched) -> int:
    return watched.idle_seconds if watched.mode is ActivityMode.CONNECTIONS else 0
