"""An IDE's own log, as the engine keeps it. Used by `runtime` and `lifecycle`.

The engine counts lines and we count bytes, so each piece comes with its time: what follows begins after the last one.
"""

from collections.abc import AsyncIterator
from datetime import datetime

from codehub.clock import Clock
from codehub.runtimes.docker.engine import Engine, EngineError, path

POLL_SECONDS = 0.5
STAMP = len("2026-01-01T00:00:00.000000000Z")
SHORT_LINE = 8  # bytes: where lines are shorter, fewer bytes than asked for are shown


async def read(engine: Engine, container: str, clock: Clock, tail_bytes: int, *, follow: bool) -> AsyncIterator[bytes]:
    """Its end first; then, with `follow`, what comes, from the next container as well."""
    end, last = bytearray(), ""
    async for at, piece in _pieces(engine, container, tail=str(tail_bytes // SHORT_LINE + 1)):
        end += piece
        last = max(last, at)
        del end[: max(0, len(end) - tail_bytes)]
    yield bytes(end)
    while follow:
        async for at, piece in _pieces(engine, container, follow="1", **_since(last)):
            if at > last:
                last = at
                yield piece
        await clock.sleep(POLL_SECONDS)


async def _pieces(engine: Engine, container: str, **more: str) -> AsyncIterator[tuple[str, bytes]]:
    """Each with its time; none where there is no such container."""
    parameters = {"stdout": "1", "stderr": "1", "timestamps": "1", **more}
    try:
        async for _, piece in engine.stream(path("containers", container, "logs"), **parameters):
            yield piece[:STAMP].decode("ascii", errors="replace"), piece[STAMP + 1 :]
    except EngineError as e:
        if e.answer not in {404, 409}:  # gone, or about to be
            raise


def _since(stamp: str) -> dict[str, str]:
    """As the engine takes it: seconds and nanoseconds."""
    if not stamp:
        return {}
    seconds = int(datetime.fromisoformat(stamp[:19] + "+00:00").timestamp())
    return {"since": f"{seconds}.{stamp[20:29]}"}
