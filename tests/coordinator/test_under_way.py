"""Work beside a loop's ticks: counted while it is under way, and never in anybody's way when it is over."""

import asyncio

from structlog.testing import capture_logs

from codehub.coordinator.under_way import UnderWay


class House:
    def __init__(self) -> None:
        self.nudged = 0
        self.go = asyncio.Event()
        self.work = UnderWay[str](self._nudge, "Could not save it")

    def _nudge(self) -> None:
        self.nudged += 1

    async def wait(self) -> None:
        await self.go.wait()

    async def fail(self) -> None:
        await self.go.wait()
        raise OSError("the disk is gone")


async def test_it_is_counted_by_its_kind_until_it_is_over_and_then_the_loop_looks_again() -> None:
    house = House()
    house.work.begin("a", "long", house.wait())
    house.work.begin("b", "short", house.wait())
    assert set(house.work) == {"a", "b"}
    assert "a" in house.work
    assert house.work.count("long") == 1
    house.go.set()
    await asyncio.gather(*house.work.tasks().values())
    await asyncio.sleep(0)
    assert not house.work
    assert house.nudged == 2


async def test_what_goes_wrong_is_told_by_the_log_and_is_over() -> None:
    house = House()
    house.work.begin("a", "long", house.fail())
    house.go.set()
    with capture_logs() as logged:
        await asyncio.gather(*house.work.tasks().values(), return_exceptions=True)
        await asyncio.sleep(0)
    assert not house.work
    assert house.nudged == 1
    assert [(line["event"], line["of"], line["error"]) for line in logged] == [
        ("Could not save it", "a", "the disk is gone")
    ]


async def test_closing_ends_all_of_it() -> None:
    house = House()
    house.work.begin("a", "long", house.wait())
    task = house.work.tasks()["a"]
    await house.work.close()
    assert task.cancelled()
    assert not house.work
