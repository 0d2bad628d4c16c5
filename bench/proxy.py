"""How fast is the proxy, beside what people would use instead?

A developer runs it and reads the tables. Ours as the product runs it (one worker: routing table, gate, header hygiene,
activity), JupyterHub's configurable-http-proxy and nginx stand in front of the same backend; each has core 0 to itself,
the backend and the load (`load.c`) have core 1. Rounds are interleaved, so a slow minute of the machine falls on all
alike. Besides the rate, the processor time of one request is measured: on a noisy machine it is the better figure.
Limits are beside it: a tunnel that only passes bytes on the same event loop, which no proxy in Python could go below,
and "no proxy", the load straight at its backend, which none at all could exceed here.

    python bench/proxy.py [--rounds N] [--seconds S] [--only WORKLOAD] [--connections N …]
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import _proxies
from bench._proxies import PEER, Lab, Load, Result, Subject

CONNECTIONS = (1, 32, 512)
SMALL, UPLOAD = "small GET", "1 MB upload"
MEGABYTE = 1 << 20
HOOK = "activity hook"


class Workload(NamedTuple):
    name: str
    answer: int = 46  # bytes
    body: int = 0
    message: int = 0

    def run(self, load: Load, lab: Lab, subject: Subject, connections: int, seconds: float) -> Result:
        head = lab.websocket() if self.message else lab.post(self.body) if self.body else lab.get(self.answer)
        return load.run(subject, head, connections=connections, seconds=seconds, body=self.body, message=self.message)

    def goals(self, peer: str, connections: int) -> tuple[float | None, float | None]:
        """(the least of our rate to theirs, the most of our 99th percentile to theirs)"""
        if peer == PEER:
            return 4.0 if self.name == SMALL and connections == 32 else 1.5 if self.name == UPLOAD else 2.0, 1.1
        return {SMALL: 0.5, UPLOAD: 0.8}.get(self.name) if peer == "nginx" else None, None


WORKLOADS = (
    Workload(SMALL),
    Workload("64 KB GET", answer=65536),
    Workload(UPLOAD, body=MEGABYTE),
    Workload("websocket 64 B", message=64),
    Workload("websocket 16 KB", message=16384),
)


def medians(runs: list[Result]) -> Result:
    return Result(*map(statistics.median, zip(*runs, strict=True)))


def verdict(workload: Workload, connections: int, peer: str, mine: Result, theirs: Result) -> str:
    rate, p99 = mine.rate / theirs.rate, mine.p99 / max(theirs.p99, 0.001)
    least, most = workload.goals(peer, connections)
    wanted = [f"rate ≥ {least}"] if least and rate < least else []
    wanted += [f"p99 ≤ {most}"] if most and p99 > most else []
    told = "" if least is None and most is None else f"  missed: {', '.join(wanted)}" if wanted else "  met"
    return f"{rate:>8.2f}{p99:>8.2f}{theirs.cpu / mine.cpu:>8.2f}{told}"


def line(workload: Workload, connections: int, name: str, runs: list[Result]) -> str:
    middle = medians(runs)
    rates = [run.rate for run in runs]
    spread = f"{min(rates):.0f}–{max(rates):.0f}"
    text = f"{workload.name:<16}{connections:>5}  {name:<24}{middle.rate:>8.0f}{spread:>16}"
    return text + f"{middle.p50:>9.3f}{middle.p99:>9.3f}{middle.cpu:>9.1f}"


def compare(load: Load, lab: Lab, subjects: list[Subject], options: argparse.Namespace) -> None:
    head = f"{'workload':<16}{'conn':>5}  {'proxy':<24}{'rate/s':>8}{'min–max':>16}"
    head += f"{'p50 ms':>9}{'p99 ms':>9}{'cpu µs':>9}{'rate×':>8}{'p99×':>8}{'cpu×':>8}"
    print(f"{head}  goal   (×: ours to theirs; cpu×: theirs to ours)", flush=True)
    straight = Subject("no proxy", load.port, 0)
    for workload in WORKLOADS:
        if options.only not in workload.name:
            continue
        for subject in subjects:  # just-in-time compilers and caches get warm
            workload.run(load, lab, subject, 32, options.seconds)
        for connections in options.connections:
            runs: dict[str, list[Result]] = {subject.name: [] for subject in subjects}
            for turn in range(options.rounds):
                for subject in subjects[turn % len(subjects) :] + subjects[: turn % len(subjects)]:
                    runs[subject.name].append(workload.run(load, lab, subject, connections, options.seconds))
            mine = medians(runs["ours"])
            for name, found in runs.items():
                told = verdict(workload, connections, name, mine, medians(found)) if name != "ours" else ""
                print(line(workload, connections, name, found) + told, flush=True)
            ceiling = [workload.run(load, lab, straight, connections, options.seconds)]
            print(line(workload, connections, straight.name, ceiling), flush=True)


def compare_hook(load: Load, lab: Lab, options: argparse.Namespace) -> None:
    """Two workers that differ only in whether activity is recorded, in pairs of runs right after each other."""
    with lab.ours("on") as on, lab.ours("off", watched=False) as off:
        for workload in (workload for workload in WORKLOADS if workload.name != UPLOAD):
            ratios, spent = [], []
            for turn in range(2 * options.rounds):
                pair = (on, off) if turn % 2 else (off, on)
                cpu = {subject: workload.run(load, lab, subject, 32, options.seconds).cpu for subject in pair}
                ratios.append((cpu[on] / cpu[off] - 1) * 100)
                spent.append(cpu[off])
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"{HOOK}, {workload.name}, 32 connections: {middle:+.1f} % processor time", end=" ")
            spread = f"half of {len(ratios)} pairs from {low:+.1f} to {high:+.1f} %"
            print(f"({spread}; without it {statistics.median(spent):.1f} µs)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2, help="length of one run")
    parser.add_argument("--only", default="", help=f"a part of the workloads' names, or “{HOOK}”")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    options = parser.parse_args()
    _proxies.require("nginx", "taskset", "node", "cc")
    _proxies.unwind_on_signals()
    _proxies.raise_open_files()
    with _proxies.going_first(), contextlib.ExitStack() as running:
        load = running.enter_context(_proxies.load())
        lab = running.enter_context(_proxies.lab({"bench": load.port}))
        if options.only != HOOK:
            with (
                lab.ours() as ours,
                _proxies.peer(load.port) as peer,
                _proxies.nginx(load.port, lab.folder) as nginx,
                _proxies.tunnel(load.port) as tunnel,
            ):
                compare(load, lab, [ours, peer, nginx, tunnel], options)
        if options.only in HOOK:
            compare_hook(load, lab, options)


if __name__ == "__main__":
    main()
