"""Homes that their owners have closed to themselves are stored away and come back; as root, and as an ordinary user."""

import pathlib
import stat
from collections.abc import AsyncGenerator

import pytest

from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import fresh_runtime, source


async def pieces(runtime: ProcessRuntime, id_: str, generation: str) -> AsyncGenerator[bytes | memoryview, None]:
    async with runtime.pack(id_, generation) as packing:
        async for piece in packing.output():
            yield bytes(piece)


@pytest.mark.parametrize("closed", ["", "work", "work/notes"])
async def test_what_is_closed_to_its_owner_is_stored_away_and_comes_back(closed: str) -> None:
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.create_volume("w1", "g1")
        home = runtime._layout.of("w1").home
        (home / "work").mkdir()
        (home / "work" / "notes").write_text("kept")
        (home / closed).chmod(0o000)
        await runtime.park_volume("w1", "g1")
        parked = runtime._layout.of("w1").parked / "home"
        assert parked.exists()
        await runtime.unpack("w2", "g2", pieces(runtime, "w1", "g1"), source())
        assert mode_of(parked, closed) == 0
        back = runtime._layout.of("w2").home
        # A home itself is always open when it comes back: nothing could be started in it.
        assert mode_of(back, closed) == (0 if closed else 0o700)
        for path in ("work", "work/notes"):
            (back / path).chmod(0o700)
        assert (back / "work" / "notes").read_text() == "kept"
        await runtime.delete_volume("w1", "g1")
        assert set(await runtime.volumes(["w1", "w2"])) == {"w2"}


def mode_of(home: pathlib.Path, path: str) -> int:
    return stat.S_IMODE((home / path).stat().st_mode)
