"""The first process of a machine of the cluster, pid 1 in its namespaces: `python -m cluster.init FOLDER`.

It runs what `machine.json` in the folder lists at the moment, and nothing else: what died is started again, what is not
listed any more is killed. When it dies itself the kernel ends the whole machine, as a power cut would.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Any

LOG_BYTES = 16 << 20
PATIENCE = 5.0  # seconds between two starts of what keeps dying
CGROUPS = pathlib.Path("/sys/fs/cgroup")
SYSCTL = pathlib.Path("/proc/sys")
READ_ONLY = ("kernel", "vm", "fs")  # what all machines share with this host
# A kubelet insists on setting these: it writes to a copy.
PRETENDED = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
KEYS = ("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")


class Machine:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: dict[str, list[str]] = {}
        self.started: dict[str, float] = {}

    def converge(self) -> None:
        wanted: dict[str, list[str]] = json.loads((self.folder / "machine.json").read_text())["programs"]
        for name in list(self.running):
            if wanted.get(name) != self.commands[name]:
                self.running[name].kill()
                self.running.pop(name).wait()
                self.started.pop(name)
        for name, command in wanted.items():
            if name not in self.running and time.monotonic() >= self.started.get(name, 0.0) + PATIENCE:
                self._start(name, command)

    def _start(self, name: str, command: list[str]) -> None:
        log = self.folder / "log" / f"{name}.log"
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
            )
        self.commands[name] = command
        self.started[name] = time.monotonic()

    def reap(self) -> None:
        """Ours and the orphans that came to us: the shims of containers, mostly."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for name, program in list(self.running.items()):
                if program.pid == pid:
                    program.returncode = -1  # collected here
                    del self.running[name]


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def furnish(folder: pathlib.Path, hierarchies: dict[str, str], own: dict[str, str]) -> None:
    """The machine's own view: its devices of the network, its part of the control groups, its folders."""
    if (folder / "run").exists():
        shutil.rmtree(folder / "run")  # as after a restart, where it would have been in memory
    mount("-t", "sysfs", "sysfs", "/sys")
    if hierarchies:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(CGROUPS))
    for name, options in hierarchies.items():
        (CGROUPS / name).mkdir()
        mount("-t", "cgroup", "-o", options, "cgroup", str(CGROUPS / name))
    for inside, name in own.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        pathlib.Path(inside).mkdir(parents=True, exist_ok=True)
        mount("--bind", str(folder / name), inside)
    for part in READ_ONLY:
        mount("--bind", str(SYSCTL / part), str(SYSCTL / part))
        mount("-o", "remount,bind,ro", str(SYSCTL / part))
    for name in (*PRETENDED, *KEYS):
        copy = folder / "sysctl" / name.replace("/", ".")
        copy.parent.mkdir(exist_ok=True)
        copy.write_text((SYSCTL / name).read_text())
        mount("--bind", str(copy), str(SYSCTL / name))


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    said: dict[str, Any] = json.loads((folder / "machine.json").read_text())
    (folder / "log").mkdir(exist_ok=True)
    subprocess.run(["hostname", said["hostname"]], check=True)
    furnish(folder, said["hierarchies"], said["own"])
    machine = Machine(folder)
    while True:
        machine.reap()
        machine.converge()
        time.sleep(0.5)


if __name__ == "__main__":
    main()
