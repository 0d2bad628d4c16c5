"""Command lines for our own helper processes. Used by `process`, `inside` and `isolation`.

They are started without `site` and without the environment: nothing of the platform's configuration is loaded or
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
