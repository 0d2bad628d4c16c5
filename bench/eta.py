"""Does the true wait lie between the bounds that people are told, and how far off is what they are told?

Simulated events (tests/waiting_room/eta_simulation.py): people arrive, poll, fall silent, come back, leave; places are
offered by the product's rules, kept for a while, given back. What a live person is told now and then, by the product's
`waiting_room.eta`, is compared with how long they then waited for their offer; beside it the seed's `position x 2 s`.
Time is made up: the same seeds give the same table on every machine.

    python bench/eta.py [--seeds 7] [--only "steady"]
"""

import argparse
import pathlib
import sys
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.waiting_room import eta_figures, eta_scenarios
from tests.waiting_room.eta_figures import Figures

COVERAGE_GOAL, ERROR_GOAL = 0.90, 0.15
HEADS = (
    "event",
    "told",
    "in bounds",
    "worst seed",
    "median error",
    "of position × 2 s",
    "high/low",
    "high − low",
    "median wait",
    "rises an hour",
)


def run(task: tuple[int, int]) -> Figures:
    scenario, seed = task
    return eta_figures.simulated(eta_scenarios.ALL[scenario], seed)


def row(name: str, runs: list[Figures]) -> str:
    all_of = eta_figures.together(runs)
    cells = (
        name,
        f"{len(all_of.samples):,}",
        f"{all_of.coverage:.1%}",
        f"{min(one.coverage for one in runs):.1%}",
        f"{all_of.error:.0%}",
        f"{all_of.seed_error:.0%}",
        f"{all_of.ratio:.1f}",
        f"{all_of.width:,.0f} s",
        f"{all_of.waited:,.0f} s",
        f"{all_of.rises / max(1, all_of.polls) * 1800:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--only", help="the name of one event")
    options = parser.parse_args()
    chosen = [n for n, s in enumerate(eta_scenarios.ALL) if options.only in {None, s.name}]
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    missed: list[str] = []
    with ProcessPoolExecutor() as pool:
        found = pool.map(run, [(scenario, seed) for scenario in chosen for seed in range(options.seeds)])
        for number in chosen:
            scenario = eta_scenarios.ALL[number]
            runs = [next(found) for _ in range(options.seeds)]
            print(row(scenario.name, runs), flush=True)
            all_of = eta_figures.together(runs)
            if all_of.coverage < COVERAGE_GOAL or (scenario.steady and all_of.error > ERROR_GOAL):
                missed.append(scenario.name)
    print(f"Goals (in bounds ≥ {COVERAGE_GOAL:.0%}; where steady, median error ≤ {ERROR_GOAL:.0%}): ", end="")
    print(f"missed by {', '.join(missed)}" if missed else "met by all")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
