"""Before an IDE's containers start in a pod: what they need of ours is put where they see it. Runs once, and ends.

The IDE's image need not have anything of it: a program that is linked statically, and two files for `/etc`.
"""

import json
import pathlib
import shutil
import sys

INIT = pathlib.Path("/opt/codehub/libexec/codehub-init")
TOOLS = pathlib.Path("/tools")


def main(arguments: list[str]) -> None:
    order = json.loads(arguments[0])
    shutil.copyfile(INIT, TOOLS / "init")
    (TOOLS / "init").chmod(0o555)
    for name, text in order["etc"].items():
        (TOOLS / name).write_text(text, encoding="utf-8")
        (TOOLS / name).chmod(0o444)


if __name__ == "__main__":
    main(sys.argv[1:])
