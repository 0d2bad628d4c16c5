"""The figures of two sizes beside each other, as the table of docs/cluster.md has them. Pure."""

from collections.abc import Callable, Iterator

from cluster.scale.measuring import Figures, Phase

COORDINATOR, SERVER, DATABASE = "coordinator", "kube-apiserver", "postgres"
Row = tuple[str, Callable[[Figures], float], str]

ROWS: tuple[Row, ...] = (
    ("coordinator: memory (PSS), MB", lambda f: f.memory[COORDINATOR], ".0f"),
    ("— to take over: processor, s", lambda f: f.first.processor[COORDINATOR], ".1f"),
    ("— to take over: requests to the API server", lambda f: sum(f.first.requests.values()), ".0f"),
    ("nothing changes, a minute: coordinator's processor, s", lambda f: _a_minute(f.idle, COORDINATOR), ".2f"),
    ("— database's processor, s", lambda f: _a_minute(f.idle, DATABASE), ".2f"),
    ("— requests to the API server", lambda f: 60 * sum(f.idle.requests.values()) / f.idle.seconds, ".0f"),
    ("an IDE ends: until its row says so, median, ms", lambda f: 1000 * f.ends.median, ".0f"),
    ("— p99, ms", lambda f: 1000 * f.ends.percentile(0.99), ".0f"),
    ("— of how many, not told of in time", lambda f: f.ends.missing, ".0f"),
    ("wakes in a minute: done", lambda f: len(f.wakes.took), ".0f"),
    ("— the last one after, s", lambda f: f.wakes.seconds, ".0f"),
    ("— from request to RUNNING, median, ms", lambda f: 1000 * f.wakes.median, ".0f"),
    ("— p99, ms", lambda f: 1000 * f.wakes.percentile(0.99), ".0f"),
    ("— requests to the API server, each", lambda f: f.wakes.per_change, ".2f"),
    ("— coordinator's processor, each, ms", lambda f: _each(f.wakes, COORDINATOR), ".1f"),
    ("— API server's processor, each, ms", lambda f: _each(f.wakes, SERVER), ".1f"),
    ("— database's processor, each, ms", lambda f: _each(f.wakes, DATABASE), ".1f"),
    ("a stop: requests to the API server", lambda f: f.stops.per_change, ".2f"),
    ("— coordinator's processor, ms", lambda f: _each(f.stops, COORDINATOR), ".1f"),
    ("— from request to STANDBY, p99, ms", lambda f: 1000 * f.stops.percentile(0.99), ".0f"),
)


def _a_minute(phase: Phase, process: str) -> float:
    return 60 * phase.processor[process] / phase.seconds


def _each(phase: Phase, process: str) -> float:
    return 1000 * phase.processor[process] / phase.changes


def table(sizes: tuple[Figures, Figures]) -> Iterator[str]:
    heads = [f"{one.running:,} run, {one.known:,} known" for one in sizes]
    yield f"| | {heads[0]} | {heads[1]} | ratio |"
    yield "|---|---|---|---|"
    for name, figure, form in ROWS:
        small, large = map(figure, sizes)
        ratio = f"{large / small:.2f}" if small else ""
        yield f"| {name} | {small:{form}} | {large:{form}} | {ratio} |"


def asked(one: Figures) -> Iterator[str]:
    """By verb, for whoever looks for a reason."""
    for name in ("first", "idle", "ends", "wakes", "stops"):
        phase: Phase = getattr(one, name)
        listed = ", ".join(f"{count} {what}" for what, count in phase.requests.most_common())
        yield f"{one.running:,} run, {name} ({phase.seconds:.0f} s, {phase.changes} changes): {listed or 'nothing'}"
        spent = ", ".join(f"{process} {seconds:.1f}" for process, seconds in sorted(phase.processor.items()))
        yield f"    processor, s: {spent}"
