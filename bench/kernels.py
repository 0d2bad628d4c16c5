"""A kernel of a warm JupyterLab: from asking for it to the result of `1+1`, warm and cold in turn.

    python bench/kernels.py [--rounds N]

Both in one workspace of the real runtime, by its socket: a kernel as a notebook starts it, which is a copy, and one of
a kernelspec with one more argument, which is why it is started anew. Needs root, as namespaces do.
"""

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.contracts.harness import fresh_runtime
from tests.jupyter.notebooks import Lab, lab

ARGUMENTS = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--colors=nocolor"]
COLD = json.dumps({"argv": ARGUMENTS, "display_name": "Cold", "language": "python"})
NAMES = {"python3": "warm", "cold": "cold"}


async def milliseconds(started: Lab, name: str) -> float:
    begun = time.perf_counter()
    kernel = await started.kernel(name=name)
    assert await kernel.run("print(1+1)") == "2\n"
    took = time.perf_counter() - begun
    assert bool(await kernel.cold_because()) == (name == "cold")
    await kernel.end()
    return took * 1000


async def compare(rounds: int) -> bool:
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    home = {".local/share/jupyter/kernels/cold/kernel.json": COLD}
    async with fresh_runtime("namespaces") as (runtime, _), lab(runtime, home=home) as started:
        for number in range(rounds + 1):
            for name, times in found.items():
                took = await milliseconds(started, name)
                if number:  # the first of each reads its files for the first time
                    times.append(took)
    for name, times in found.items():
        spread = f"({min(times):.0f}–{max(times):.0f})"
        print(f"{NAMES[name]}: POST to the result of 1+1 {statistics.median(times):.0f} ms {spread}, n={rounds}")
    ratio = statistics.median(found["cold"]) / statistics.median(found["python3"])
    print(f"cold to warm: {ratio:.1f} times (goal ≥ 2)")
    return ratio >= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning")
    sys.exit(0 if asyncio.run(compare(given.rounds)) else 1)


if __name__ == "__main__":
    main()
