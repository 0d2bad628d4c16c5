"""Command lines for our own helper processes. Used by `process`, `inside`, `isolation` and `warm`.

Helpers are started without `site` and without the environment: nothing of the platform's configuration is loaded or
passed on, and they are up in a few hundredths of a second.
"""

import pathlib
import sys

import codehub

PACKAGE_ROOT = str(pathlib.Path(codehub.__file__).resolve().parents[1])
_BOOT = (
    "import sys, importlib; sys.path.append(sys.argv[1]); "
    "importlib.import_module('codehub.runtimes.shepherd.' + sys.argv[2]).main(sys.argv[3:])"
)


def helper(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _BOOT, PACKAGE_ROOT, module, *arguments]


# The last line runs with nothing else on the stack: what it runs ends as a program does that was started anew.
_WARM = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
added = "" if sys.argv[1] in sys.path else sys.argv[1]
sys.path.extend([added] if added else [])
from codehub.runtimes.shepherd import become, warm
program = None
try:
    warm.main(sys.argv[2:])
except become.Run as run:
    program, kernels = run.program, run.kernels
if program:
    become.run(program, added, kernels)
"""


def warm_parent(interpreter: str, flags: tuple[str, ...], *arguments: str) -> list[str]:
    """With `site`, as the program that its copies become: what that one would load is what they are to have."""
    return [interpreter, *flags, "-c", _WARM, PACKAGE_ROOT, *arguments]
