"""`make model ARGS=waiting_room`: all scenarios; `ARGS="waiting_room 600"`: so many seconds for each of the wide ones;
`ARGS="waiting_room guards"`: each guard taken away. `make model` alone runs what can be gone through to its end.
"""

import itertools
import time

from model.waiting_room import guards
from model.waiting_room.explore import Explorer, Found
from model.waiting_room.scenarios import COMPLETE, DEEP, WIDE, Scenario

WIDE_SECONDS = 60.0
WALK_STEPS = 150


def check(*, seconds: float = 0.0) -> int:
    """0 seconds: only what is complete."""
    problems = sum(_explore(name, scenario, 1e9) for name, scenario in COMPLETE.items())
    if seconds:
        problems += sum(_explore(name, scenario, seconds) for name, scenario in WIDE.items())
        problems += sum(_walk(name, scenario, seconds) for name, scenario in DEEP.items())
    print("Everything that must hold holds." if not problems else f"{problems} BROKEN.")
    return int(problems > 0)


def _explore(name: str, scenario: Scenario, seconds: float) -> bool:
    begun, explorer = time.process_time(), scenario.explorer()
    found = explorer.run(seconds=seconds)
    how = "complete" if explorer.complete else "cut off"
    cpu = time.process_time() - begun
    print(
        f"{name}: {len(explorer.states)} states, {explorer.transitions} transitions, {how}, {cpu:.0f} s of CPU",
        flush=True,
    )
    return _tell(found)


def _walk(name: str, scenario: Scenario, seconds: float) -> bool:
    """Random histories; a new table of states now and then, as they only grow."""
    until, histories, steps = time.monotonic() + seconds, 0, 0
    explorer: Explorer = scenario.explorer()
    for seed in itertools.count(time.time_ns() % 10**9):
        if time.monotonic() > until:
            break
        if histories % 50 == 0:
            steps += explorer.transitions
            explorer = scenario.explorer()
        histories += 1
        if found := explorer.walk(seed, WALK_STEPS):
            print(f"{name}, seed {seed}:")
            return _tell(found)
    print(f"{name}: {histories} random histories, {steps + explorer.transitions} steps", flush=True)
    return False


def _tell(found: Found | None) -> bool:
    if found:
        print(f"BROKEN: {found.problem}")
        for number, line in enumerate(found.trace):
            print(f"{number:3} {line}")
    return found is not None


def main(args: list[str]) -> int:
    if args[:1] == ["guards"]:
        return guards.report()
    return check(seconds=float(args[0]) if args else WIDE_SECONDS)
