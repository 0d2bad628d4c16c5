"""`make model`: the whole check, a smaller one (`ARGS="1 2"`: faults, requests), or the mutants (`ARGS=mutants`).

`ARGS=waiting_room` checks the waiting room, as far as the time allows; the whole check includes what is small of it.
"""

import sys
import time

from model import doubles, mutants, scenarios
from model.explore import Bounds, Explorer
from model.waiting_room import report as waiting_room


def check(bounds: Bounds) -> int:
    beginnings = scenarios.beginnings()
    print(f"At most {bounds.faults} faults and {bounds.requests} requests, from {len(beginnings)} beginnings.")
    begun, explorer = time.monotonic(), Explorer(bounds)
    with doubles.driven():
        found = explorer.run(beginnings)
    took, cpu = time.monotonic() - begun, time.process_time()
    print(f"{len(explorer.index)} states, {explorer.transitions} transitions, {took:.0f} s ({cpu:.0f} s of CPU).")
    tables = explorer.tables
    sizes = (len(tables.rows.values), len(tables.worlds.values), len(tables.leaders.values))
    print("Of {} rows, {} machines, {} places of a leader.".format(*sizes))
    if found is None:
        print("Everything that must hold holds.")
        return 0
    print(f"BROKEN: {found.problem}")
    for number, line in enumerate(found.trace):
        print(f"{number:3} {line}")
    return 1


def main(args: list[str]) -> int:
    if args[:1] == ["mutants"]:
        wanted = " ".join(args[1:])
        return mutants.report(mutants.run(wanted), whole=not wanted)
    if args[:1] == ["waiting_room"]:
        return waiting_room.main(args[1:])
    failed = check(Bounds(*(int(arg) for arg in args)))
    return failed if args else failed | waiting_room.check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
