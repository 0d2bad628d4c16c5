"""A TTL runner, a controller and as many proxies as a test wants: on the real database and Redis, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from redis.asyncio import Redis

from codehub.activity.model import Watched
from codehub.activity.reader import ActivityReader
from codehub.activity.recorder import Recorder, TunnelRecorder
from codehub.proxy.model import Block, RequestHead
from codehub.reconciler.idle_recheck import ByActivity
from codehub.reconciler.ttl import TtlRunner
from codehub.settings import ActivityConfig, LimitsConfig, TtlConfig
from codehub.templates.model import ActivityMode, ActivityProfile, Template
from codehub.workspaces.admission import admitted
from codehub.workspaces.idle_store import Idle
from codehub.workspaces.model import Desired, Phase, Work, Workspace
from codehub.workspaces.service import NewWorkspace
from codehub.workspaces.ttl_policy import TtlPolicies
from tests.reconciler.test_controller import MINA, House, build
from tests.virtual_time import ManualClock

STANDBY, ARCHIVE, FLUSH, TICK = 600, 1800, 30, 60


class SomeTemplates:
    """`t` lives by traffic, `c` by connections, `j` is a Jupyter; all exist."""

    def find(self, name: str) -> Template:
        mode = ActivityMode.CONNECTIONS if name.startswith("c") else None
        profile = ActivityProfile.JUPYTER if name.startswith("j") else ActivityProfile.PLAIN
        return Template(name, name, activity=mode, activity_profile=profile, start_seconds=20)

    require = find


class DrivenClock(ManualClock):
    """Whoever sleeps lets the time pass; what is to happen meanwhile happens."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds
        if self.meanwhile:
            await self.meanwhile()
        await asyncio.sleep(0)


def head(target: bytes = b"/", method: bytes = b"GET", *, upgrade: bool = False) -> RequestHead:
    made = RequestHead()
    made.method, made.target, made.upgrade, made.block = method, target, upgrade, Block()
    return made


@dataclass
class Proxy:
    """One worker's recorder, flushed by hand."""

    recorder: Recorder
    tunnels: list[TunnelRecorder] = field(default_factory=list)

    def visit(self, id_: str, mode: ActivityMode = ActivityMode.TRAFFIC, seconds: int = 300) -> None:
        self.recorder.request(Watched(id_, ActivityProfile.PLAIN, mode, seconds), head())

    def connect(self, id_: str, mode: ActivityMode = ActivityMode.CONNECTIONS, seconds: int = 300) -> TunnelRecorder:
        watched = Watched(id_, ActivityProfile.PLAIN, mode, seconds)
        self.tunnels.append(self.recorder.tunnel(watched, head(b"/ws", upgrade=True)))
        return self.tunnels[-1]

    async def flush(self) -> None:
        await self.recorder.is_asked()
        await self.recorder.flush()

    async def tell_connections(self) -> None:
        await self.recorder._leases.write()


@dataclass
class Evening(House):
    """The house, when it gets late."""

    redis: Redis
    reader: ActivityReader
    ttl_policies: TtlPolicies
    runner: TtlRunner = field(init=False)
    busy: set[str] = field(default_factory=set)
    nudged: int = 0
    proxies: int = 0
    live: list[Proxy] = field(default_factory=list)

    async def proxy(self) -> Proxy:
        self.proxies += 1
        made = Proxy(Recorder(self.redis, self.clock, f"proxy-{self.proxies}", ActivityConfig()))
        await made.flush()  # registers
        self.live.append(made)
        return made

    async def all_flush(self) -> None:
        """A moment later, as they do when they are asked."""
        self.pass_time(0.5)
        for proxy in self.live:
            await proxy.flush()

    async def ws(self, template: str = "t", **columns: Any) -> str:
        """One that runs."""
        made = admitted(await self.service.create(MINA, NewWorkspace("lab", template, Desired.RUNNING, **columns)))
        await self.until(made.id, Phase.RUNNING)
        return made.id

    async def get(self, id_: str) -> Workspace:
        return await self.service.get(MINA, id_)

    async def settle(self) -> None:
        """Past the time in which nothing is decided because Redis is new."""
        await self.runner.tick()
        self.pass_time(70)

    def pass_time(self, seconds: float) -> None:
        self.clock._elapsed += seconds

    def step_clock(self, seconds: float) -> None:
        """Somebody sets the clock on the wall."""
        self.clock._start += timedelta(seconds=seconds)

    def since(self, at: datetime) -> float:
        return (self.clock.now() - at).total_seconds()


async def evening(house: House, redis: Redis, ttl: TtlConfig | None = None) -> Evening:
    ttl_policies = TtlPolicies(ttl or TtlConfig(), ActivityConfig(), SomeTemplates())  # type: ignore[arg-type]
    reader = ActivityReader(redis, house.clock, FLUSH, "this boot")
    late = Evening(**vars(house), redis=redis, reader=reader, ttl_policies=ttl_policies)

    async def busy(found: Sequence[Idle]) -> tuple[dict[str, Work], set[str]]:
        return {w.id: Work.KERNEL for w in found if w.id in late.busy}, set()

    def nudge() -> None:
        late.nudged += 1

    house.service._limits = LimitsConfig(max_running_per_user=0, max_running_global=0)
    house.controller._idle_recheck = ByActivity(reader, house.clock, ttl_policies)
    late.runner = TtlRunner(house.lease, reader, house.clock, ttl_policies, busy, nudge)
    return late


async def successor(late: Evening) -> Evening:
    """Another coordinator takes over."""
    house = await build(late.database, late.redis, late.clock, late.runtime)
    again = await evening(house, late.redis)
    again.live = late.live
    return again
