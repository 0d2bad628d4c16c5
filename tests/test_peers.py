"""Who takes whom for a process of the same platform, by the keys that each of them has."""

import asyncio
import itertools
import ssl

import pytest

from codehub import peers
from codehub.system.doors import Doors

OLD, NEW = "the-key-that-was-there-before", "the-key-that-comes-after-it-now"
# As `CODEHUB_SECRET_KEY` says. Of two that follow each other, some processes still have the first.
STEPS = [OLD, f"{OLD},{NEW}", f"{NEW},{OLD}", NEW]


async def meet(server: str, client: str) -> bool:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=peers.of(server).server)
    try:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=peers.of(client).client)
        writer.write(b"here\n")
        answered = await reader.readline() == b"here\n"
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return False
    finally:
        listening.close()
    return answered


@pytest.mark.parametrize(("before", "after"), list(itertools.pairwise(STEPS)))
async def test_a_key_is_replaced_in_three_steps_and_in_none_of_them_is_anybody_shut_out(
    before: str, after: str
) -> None:
    assert await meet(before, after)
    assert await meet(after, before)
    for ours, others in ((before, after), (after, before)):
        name = Doors(others).new()
        assert Doors(ours).pair(name) == Doors(others).pair(name)


async def test_in_fewer_steps_those_that_were_not_started_anew_yet_are_shut_out() -> None:
    assert not await meet(OLD, f"{NEW},{OLD}")
    assert not await meet(f"{NEW},{OLD}", OLD)
    with pytest.raises(ssl.SSLError):
        Doors(OLD).client(Doors(f"{NEW},{OLD}").new())
