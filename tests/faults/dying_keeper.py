"""Like `dying_coordinator`, for all that keeps people's files; it can also be stopped at a line instead of killed.

python -m tests.faults.dying_keeper FILE:LINE | --stop FILE:LINE | --list OUT
"""

import signal
import sys

import codehub
from tests.faults import dying_coordinator

MORE = (
    *("retention/gc.py", "retention/trash.py"),
    *("archives/direct.py", "archives/local.py", "archives/process.py"),
)


def line_of(name: str, text: str) -> str:
    """Where in the source this is, for whoever wants to die there."""
    lines = (dying_coordinator.ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(found) == 1, (name, text, found)
    return f"{name}:{found[0]}"


def main(arguments: list[str]) -> None:
    assert codehub.__file__
    for name in MORE:
        dying_coordinator.FILES[str(dying_coordinator.ROOT / name)] = name
    if arguments[0] == "--stop":
        dying_coordinator.DEATH = signal.SIGSTOP
        arguments = arguments[1:]
    dying_coordinator.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
