"""What a network of one's own adds to a start: each way out beside `host`, the machine's own network.

Seconds from `Runtime.start` to the first answer of a small program, the ways one after the other, alternating.

    python bench/network_starts.py [--rounds 15]
"""

import argparse
import asyncio
import dataclasses
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.contracts.harness import KINDS, answering, fresh_runtime, open_runtime
from tests.contracts.workloads import server, workload

from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import Network, Template


def template(network: Network | None) -> Template:
    plain = server()
    assert plain.process
    return dataclasses.replace(plain, process=dataclasses.replace(plain.process, network=network))


async def start(runtime: ProcessRuntime, network: Network | None) -> float:
    """Milliseconds; as an admin's, because nobody else may have the machine's own network."""
    wanted = dataclasses.replace(workload(template(network), "bench"), trusted=True)
    begun = time.perf_counter()
    await runtime.start(wanted)
    await answering(runtime, "bench")
    took = time.perf_counter() - begun
    await runtime.stop("bench", 0)
    return took * 1000


async def compare(kind: str, rounds: int) -> None:
    async with fresh_runtime(kind, network_via="relay") as (one, data_dir):
        await one.create_volume("bench", "g1")
        runtimes = {"host": one, "relay": one}
        for way in ("slirp4netns", "veth"):
            other = open_runtime(data_dir, kind, network_via=way)
            if (await other.way_out()).kind == way:
                runtimes[way] = other
        times: dict[str, list[float]] = {way: [] for way in runtimes}
        for number in range(rounds + 1):
            for way, runtime in runtimes.items():
                took = await start(runtime, Network.HOST if way == "host" else None)
                if number:  # the first of each finds nothing in any cache
                    times[way].append(took)
    base = statistics.median(times["host"])
    for way, found in times.items():
        median, (low, _, high) = statistics.median(found), statistics.quantiles(found, n=4)
        print(
            f"{kind:<12}{way:<12} {median:6.0f} ms (quartiles {low:.0f} to {high:.0f})"
            f"  {median - base:+5.0f} ms, {median / base:.2f} × host"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for kind in KINDS:
        asyncio.run(compare(kind, rounds))


if __name__ == "__main__":
    main()
