"""`make cluster` and `make cluster-down`; the other commands by `python -m cluster`."""

import argparse
import subprocess
import sys
import time

from cluster import layout, lifecycle
from cluster.layout import NODES

USE = """\
A Kubernetes {version} cluster of {count} nodes runs ({seconds:.0f} s).

  export KUBECONFIG={kubeconfig}
  {kubectl} get pods -A

Images: python -m cluster load IMAGE (of the Docker engine, or a file that docker save wrote). Claims: class {storage}.
A node's loss: python -m cluster node-lost {last}, and node-back {last}. The end: make cluster-down.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start what does not run; builds it at first")
    commands.add_parser("down", help="end everything and remove it")
    commands.add_parser("status", help="machines and nodes")
    commands.add_parser("kubeconfig", help="print where it is")
    commands.add_parser("load", help="put an image onto every node").add_argument("image")
    lost = commands.add_parser("node-lost", help="kill kubelet and containerd of a node and cut it off")
    lost.add_argument("node", choices=NODES)
    lost.add_argument("--power", action="store_true", help="switch the whole machine off: its pods die")
    commands.add_parser("node-back", help="let it come back").add_argument("node", choices=NODES)
    said = parser.parse_args()
    try:
        return _run(said)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as problem:
        print(f"{said.command}: {problem}", file=sys.stderr)
        return 1


def _run(said: argparse.Namespace) -> int:
    place, began = layout.place(), time.monotonic()
    match said.command:
        case "up":
            lifecycle.up(place)
            print(_use(place, time.monotonic() - began))
        case "down":
            lifecycle.down(place)
        case "status":
            print(lifecycle.status(place))
        case "kubeconfig":
            print(place.kubeconfig)
        case "load":
            lifecycle.load(place, said.image)
        case "node-lost":
            lifecycle.lose(place, said.node, power=said.power)
        case "node-back":
            lifecycle.bring_back(place, said.node)
    return 0


def _use(place: layout.Place, seconds: float) -> str:
    return USE.format(
        version=layout.KUBERNETES,
        count=len(NODES),
        seconds=seconds,
        kubeconfig=place.kubeconfig,
        kubectl=lifecycle.kubectl(),
        storage=layout.STORAGE_CLASS,
        last=NODES[-1],
    )


if __name__ == "__main__":
    sys.exit(main())
