"""Is the proxy slower than it was? This checkout beside another one, with the same packages.

A developer runs it and reads a line for each workload. Both workers stand in front of the same backend, on core 0, in
pairs of runs right after each other, so that a slow minute of the machine falls on both. The ratio is taken of every
pair; of a busy machine believe the processor time of a request, not the rate.

    git worktree add /tmp/before COMMIT
    make bench ARGS="proxy_versions --against /tmp/before"
"""

import argparse
import contextlib
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import _proxies
from bench._proxies import Lab, Load, Result, Subject
from bench.proxy import MEGABYTE, Workload

WORKLOADS = (
    Workload("small GET"),
    Workload("64 KB GET", answer=65536),
    Workload("1 MB upload", body=MEGABYTE),
    Workload("websocket 64 B", message=64),
    Workload("websocket 16 KB", message=16384),
)


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:9.2f} ({low:.2f} to {high:.2f})"


def compare(load: Load, lab: Lab, now: Subject, before: Subject, options: argparse.Namespace) -> None:
    print(f"{'workload':<16}{'before':>28}{'now':>28}{'now / before':>28}   median (half of the pairs)", flush=True)
    for workload in WORKLOADS:
        if options.only not in workload.name:
            continue
        runs: dict[Subject, list[Result]] = {now: [], before: []}
        for subject in runs:  # caches get warm
            workload.run(load, lab, subject, options.connections, options.seconds)
        for turn in range(options.rounds):
            for subject in (now, before) if turn % 2 else (before, now):
                runs[subject].append(workload.run(load, lab, subject, options.connections, options.seconds))
        for what, field in (("rate/s", "rate"), ("cpu µs", "cpu")):
            old, new = ([float(getattr(run, field)) for run in runs[subject]] for subject in (before, now))
            ratios = [b / a for a, b in zip(old, new, strict=True)]
            print(f"{workload.name:<16}{what}  {spread(old):>28}{spread(new):>28}{spread(ratios):>28}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=pathlib.Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1, help="length of one run")
    parser.add_argument("--only", default="", help="a part of the workloads' names")
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    if options.against is None:
        print("--against names another checkout to compare with, for example of `git worktree add`")
        return
    _proxies.require("taskset", "cc")
    _proxies.unwind_on_signals()
    _proxies.raise_open_files()
    with _proxies.going_first(), contextlib.ExitStack() as running:
        load = running.enter_context(_proxies.load())
        lab = running.enter_context(_proxies.lab({"bench": load.port}))
        with lab.ours("now") as now, lab.ours("before", checkout=options.against.resolve()) as before:
            compare(load, lab, now, before, options)


if __name__ == "__main__":
    main()
