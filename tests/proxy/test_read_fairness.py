"""Those who read much take turns. Real sockets on the real loop; what is counted is rounds of the loop, not time."""

import asyncio
import contextlib
import socket
from collections import Counter

import uvloop

from codehub.proxy.read_fairness import AT_ONCE, LARGE, ROUND, Reader, Turns

READERS = 6 * AT_ONCE
EACH = 4 * 1024 * 1024


class Counting(Reader):
    """Notes how much it got in which round of the loop."""

    def __init__(self, house: "House") -> None:
        super().__init__()
        self._house = house
        self.got = 0
        self.rounds: Counter[int] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.got += len(data)
        self.rounds[self._house.round] += len(data)
        if len(data) >= LARGE:
            self._house.turns.took(self, len(data))


class House:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.turns = Turns(self._loop)
        self.round = 0
        self._count()

    def _count(self) -> None:
        self.round += 1
        self._counting = self._loop.call_soon(self._count)

    def stop(self) -> None:
        self._counting.cancel()

    async def reader(self, stack: contextlib.ExitStack) -> tuple[Counting, socket.socket]:
        ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
        theirs.setblocking(False)
        _, reader = await self._loop.create_unix_connection(lambda: Counting(self), sock=ours)
        return reader, theirs


async def flood() -> tuple[list[Counting], Counting]:
    """Many that read much, and one beside them that gets a byte at a time, each after it got the one before."""
    house, loop = House(), asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        many = [await house.reader(stack) for _ in range(READERS)]
        small, to_small = await house.reader(stack)
        sending = [loop.create_task(loop.sock_sendall(end, bytes(EACH))) for _, end in many]
        async with asyncio.timeout(60):
            while not all(task.done() for task in sending):
                await loop.sock_sendall(to_small, b"x")
                before = small.got
                while small.got == before and not all(task.done() for task in sending):
                    await asyncio.sleep(0)
            while any(reader.got < EACH for reader, _ in many):
                await asyncio.sleep(0)
        house.stop()
        for reader, _ in [*many, (small, to_small)]:
            reader.transport.abort()
        await asyncio.sleep(0)
        return [reader for reader, _ in many], small


def test_a_few_at_a_time_read_much_and_nobody_is_forgotten() -> None:
    many, small = uvloop.run(flood())
    assert [reader.got for reader in many] == [EACH] * READERS
    total = sum((reader.rounds for reader in many), Counter[int]())
    rounds = sorted(total)
    # At first nobody knows how much the others read; from then on there is a queue.
    assert max(total[number] for number in rounds[len(rounds) // 4 :]) <= 2 * ROUND
    # Who reads little is served all the while.
    assert small.got >= len(rounds) // 8


async def _paused_and_waiting() -> list[bool]:
    house, loop = House(), asyncio.get_running_loop()
    seen = []
    with contextlib.ExitStack() as stack:
        reader, other = await house.reader(stack)
        reader.wait()
        reader.pause_reading()
        for act in (reader.go_on, reader.wait, reader.resume_reading, reader.go_on):
            act()
            await loop.sock_sendall(other, b"x")
            before = reader.got
            for _ in range(20):
                await asyncio.sleep(0)
            seen.append(reader.got > before)
        house.stop()
        reader.transport.abort()
        await asyncio.sleep(0)
    return seen


def test_it_reads_when_there_is_room_and_it_is_its_turn() -> None:
    assert uvloop.run(_paused_and_waiting()) == [False, False, False, True]
