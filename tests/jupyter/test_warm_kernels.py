"""Kernels of a warm JupyterLab: as those that are started anew, and whatever is wrong costs only a cold kernel."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contracts.harness import fresh_runtime, log_has, until
from tests.jupyter.notebooks import Kernel, Lab, ended, lab
from tests.runtimes.test_own_packages import wheel
from tests.runtimes.test_warm import PROBES

CONFIG = ".config/jupyter/jupyter_server_config.py"
MORE_PROBES = """
with open(os.path.expanduser("~/told.json")) as f:
    told, fresh = json.load(f)
import subprocess, traceback
told |= {
    "threads": sorted(f"{type(t).__module__}.{type(t).__name__}" for t in threading.enumerate()),
    "descriptors": sorted(set(told["descriptors"].values())),
    "sockets": sorted({str((s.family, s.type)) for fd, kind in told["descriptors"].items() if kind == "socket"
                       for s in [socket.socket(fileno=os.dup(int(fd)))]}),
    "inheritable": [fd for fd in range(3, 200) if os.path.exists(f"/proc/self/fd/{fd}") and os.get_inheritable(fd)],
    "priority": [os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0)],
    "parent": open(f"/proc/{os.getppid()}/comm").read(),
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "subreaper": ctypes.CDLL(None).prctl(37, ctypes.byref(number := ctypes.c_int(7)), 0, 0, 0) or number.value,
    "death signal": ctypes.CDLL(None).prctl(2, ctypes.byref(number := ctypes.c_int(7)), 0, 0, 0) or number.value,
    "working set": get_ipython().user_ns["__name__"],
    "magics": sorted(get_ipython().magics_manager.magics["line"]),
    "child": subprocess.run(["sh", "-c", "umask; ulimit -a; echo $0; env | sort"], capture_output=True,
                            text=True).stdout,
    "interpreter": subprocess.run([sys.executable, "-c", "import sys; print(sys.path, sys.flags)"],
                                  capture_output=True, text=True).stdout,
    "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ("codehub", "__main__")),
    "filters": sorted(str(f) for f in warnings.filters if "jupyter_events" not in str(f) and "urllib3" not in str(f)
                      and "requests" not in str(f)),
    "loggers": [logging.getLogger().level, [str(h)[:20] for h in logging.getLogger().handlers]],
}
# Of others' pids, and of warnings that only modules have which kernels do not use.
told["processes"] = told["warnings"] = []
print(json.dumps([told, fresh]))
"""


@contextlib.asynccontextmanager
async def warm_lab(**home: str) -> AsyncIterator[Lab]:
    async with fresh_runtime("namespaces") as (runtime, _), lab(runtime, home=home) as started:
        assert len(await started.kernel_parents()) == 1
        yield started


async def without_parent(started: Lab) -> None:
    for pid in await started.kernel_parents():
        await started.inside(f"kill -9 {pid}")


async def told(kernel: Kernel) -> tuple[dict[str, Any], dict[str, Any]]:
    # The interpreter's own streams, not those that print into the notebook.
    said = await kernel.run(re.sub(r"sys\.(std(in|out|err))", r"sys.__\1__", PROBES) + MORE_PROBES)
    assert said.startswith("["), said
    said = said.replace(kernel.id, "ID")
    first, second = json.loads(said)
    return first, second


async def test_a_warm_kernel_finds_itself_as_a_cold_one_does() -> None:
    async with warm_lab() as started:
        warm = await started.kernel()
        found, _ = await told(warm)
        assert await warm.cold_because() == ""
        await without_parent(started)
        cold = await started.kernel()
        expected, _ = await told(cold)
        assert "their parent" in await cold.cold_because()
    differs = {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]}
    assert differs == {}, json.dumps(differs, indent=1)


async def test_what_is_random_is_another_in_each_kernel() -> None:
    async with warm_lab() as started:
        (_, one), (_, other) = [await told(await started.kernel()) for _ in range(2)]
    assert [name for name in one if one[name] == other[name]] == []


async def test_what_it_prints_beside_the_notebook_is_in_the_log() -> None:
    write = """if True:
        import os, sys
        for number, stream in enumerate([sys.stdout, sys.stderr]):
            os.write(stream._original_stdstream_copy, b"beside %d\\n" % number)"""
    async with warm_lab() as started:
        kernel = await started.kernel()
        await kernel.run(write)
        await log_has(started.runtime, started.id, b"beside 1")
        assert "beside 0" in await started.log()
        assert await kernel.cold_because() == ""


async def test_its_folder_umask_limits_and_priority_are_those_of_its_server() -> None:
    """Also where the person's configuration has changed them."""
    config = "import os, resource\nos.umask(0o022)\nos.nice(3)\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    config += "resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 4 << 20))\n"
    config += "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    ask = "import os; os.system('umask; ulimit -c; ulimit -Hs; nice; nproc; pwd')"
    async with warm_lab(**{CONFIG: config, "lessons/one.txt": ""}) as started:
        warm = await started.kernel(path="lessons/x.ipynb")
        said = await warm.run(ask)
        nice = str(os.nice(0) + 3)
        assert said.split() == ["0022", "0", "4096", nice, "1", "/home/alice/lessons"]
        assert await warm.cold_because() == ""
        await without_parent(started)
        assert await (await started.kernel(path="lessons/x.ipynb")).run(ask) == said


async def test_a_notebook_finds_in_its_next_cell_what_it_installs() -> None:
    async with warm_lab(**{"greeting-1.0-py3-none-any.whl": ""}) as started:
        await started.runtime.put(started.id, {"greeting-1.0-py3-none-any.whl": wheel("greeting")})
        kernel = await started.kernel()
        await kernel.run("%pip install --no-index ./greeting-1.0-py3-none-any.whl")
        assert await kernel.run("import greeting; print(greeting.WORDS)") == "hello\n"
        assert await kernel.cold_because() == ""
        later = await started.kernel()
        assert await later.run("import greeting; print(greeting.WORDS)") == "hello\n"
        assert await later.cold_because() == ""


ENDLESS = "import os, time\nprint(os.getpid(), flush=True)\nopen('at-it', 'w').close()\nwhile True: time.sleep(0.01)"


async def test_it_is_interrupted_restarted_noticed_when_it_dies_and_ended_like_any_other() -> None:
    """Each with what it leaves: no process, not even a dead one. All of its lives are warm."""
    async with warm_lab() as started:
        kernel = await started.kernel()
        computing = asyncio.create_task(kernel.run(ENDLESS))
        await until(lambda: started.inside("test -e /home/alice/at-it && echo there"))
        await kernel.ask("interrupt")
        assert "KeyboardInterrupt" in await computing
        first = await kernel.pid()
        await kernel.run("kept = 1")
        await kernel.ask("restart")
        second = await kernel.pid()
        assert second != first
        assert "NameError" in await kernel.run("kept")
        await ended(started, first)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            after = await after_its_death(started, kernel, number)
            assert await kernel.pid() == after
        await kernel.end()
        await ended(started, after)
        assert await started.inside("ps axo stat= | grep -c Z") == "0"
        assert "is started cold" not in await started.log()


async def after_its_death(started: Lab, kernel: Kernel, number: signal.Signals) -> int:
    """The pid of the process that its server starts in its place."""
    before = await kernel.pid()
    await started.inside(f"kill -{int(number)} {before}")
    await ended(started, before)
    return await until(lambda: another(started, kernel, before))


async def another(started: Lab, kernel: Kernel, before: int) -> int:
    """The pid of the process that this kernel is now; nothing while there is none."""
    found = [int(word) for word in (await started.inside(f"pgrep -f 'ipykernel_launcher.*{kernel.id}'")).split()]
    return next((pid for pid in found if pid != before), 0)


async def test_it_ends_when_its_server_is_gone() -> None:
    """As ipykernel sees to: it asks who its parent is, and that is the server."""
    async with warm_lab() as started:
        kernel = await started.kernel()
        assert await kernel.run("import os; print(os.getppid(), os.environ['JPY_PARENT_PID'])") == "2 2\n"
        pollers = "import threading; print([type(t).__name__ for t in threading.enumerate()].count('ParentPollerUnix'))"
        assert await kernel.run(pollers) == "1\n"
        assert await kernel.cold_because() == ""


async def test_many_kernels_at_once_are_all_warm() -> None:
    async with warm_lab() as started:
        kernels = await asyncio.gather(*(started.kernel() for _ in range(6)))
        assert len({await kernel.pid() for kernel in kernels}) == 6
        assert [await kernel.cold_because() for kernel in kernels] == [""] * 6
        assert await started.inside("ps axo ppid=,args= | grep -c '^ *2 .*ipykernel_launche[r]'") == "6"


SPEC = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "x"}
SPECS = ".local/share/jupyter/kernels/python3/kernel.json"
REASONS = {
    "a variable that is read at the start": ({SPECS: {"env": {"PYTHONOPTIMIZE": "1"}}}, "PYTHONOPTIMIZE in its env"),
    "another home": ({SPECS: {"env": {"HOME": "/tmp"}}}, "HOME in its environment"),
    "other arguments": ({SPECS: {"argv": [*SPEC["argv"], "--quiet"]}}, "it is another kernel"),
    "another interpreter": ({SPECS: {"argv": ["/usr/bin/env", *SPEC["argv"]]}}, "it is another kernel"),
    "a module beside the notebook": ({"fractions.py": "HALF = 2"}, "fractions.py in its folder"),
    "a package of the home": (
        {f".local/lib/python3.{sys.version_info.minor}/site-packages/notebook.py": ""},
        "pack",
    ),
}


@pytest.mark.parametrize(("files", "reason"), REASONS.values(), ids=REASONS)
async def test_where_a_copy_would_be_another_kernel_it_is_started_cold_and_the_log_says_why(
    files: dict[str, str | dict[str, Any]], reason: str
) -> None:
    written = {name: text if isinstance(text, str) else json.dumps({**SPEC, **text}) for name, text in files.items()}
    async with warm_lab() as started:
        warm = await started.kernel()
        await started.runtime.put(started.id, {name: text.encode() for name, text in written.items()})
        kernel = await started.kernel()
        assert await kernel.run("print(6 * 7)") == "42\n"
        assert (await kernel.cold_because()).startswith(reason)
        assert await warm.cold_because() == ""


async def test_kernels_of_a_server_that_was_started_cold_are_cold() -> None:
    async with fresh_runtime("namespaces") as (runtime, _), lab(runtime, warm=False) as started:
        assert await (await started.kernel()).run("print(6 * 7)") == "42\n"
        assert "Kernels are started cold: this server was, too" in await started.log()
        assert await started.kernel_parents() == []


async def test_a_provisioner_that_the_person_has_configured_is_theirs() -> None:
    config = "c.KernelProvisionerFactory.default_provisioner_name = 'local-provisioner'\n"
    async with warm_lab_without_parent(**{CONFIG: config}) as started:
        assert await (await started.kernel()).run("print(6 * 7)") == "42\n"
        assert "by the provisioner that is configured" in await started.log()
        assert await started.kernel_parents() == []


@contextlib.asynccontextmanager
async def warm_lab_without_parent(**home: str) -> AsyncIterator[Lab]:
    async with fresh_runtime("namespaces") as (runtime, _), lab(runtime, home=home) as started:
        yield started


HOSTILE = """
import os, signal, socket
from codehub.jupyter import kernels
fd, pid = kernels.offered
"""
TRICKS = {
    "killed": "os.kill(pid, signal.SIGKILL)",
    "stopped": "os.kill(pid, signal.SIGSTOP)",
    "spoken to": "socket.socket(fileno=os.dup(fd)).send(b'{}')",
    "nonsense with descriptors": "socket.send_fds(socket.socket(fileno=os.dup(fd)), [b'[1, 2'], [0, 1, 2])",
    "a question like ours": "socket.send_fds(socket.socket(fileno=os.dup(fd)), "
    '[b\'{"command": ["x"], "environment": {}, "directory": "/"}\'], [0, 1, 2])',
    "closed": "os.close(fd)",
    "answered for": "import json; kernels.KernelParent._exchange = lambda *_: {'pid': 1}",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
async def test_what_a_person_does_to_their_own_kernel_parent_costs_a_cold_kernel(trick: str) -> None:
    async with warm_lab_without_parent(**{CONFIG: HOSTILE + trick}) as started:
        for _ in range(2):
            kernel = await started.kernel()
            assert await kernel.run("print(6 * 7)") == "42\n"
            await kernel.end()
        assert "started cold: " in await started.log()


async def test_a_kernel_parent_has_nothing_that_its_workspace_has_not_and_cannot_be_reached() -> None:
    rights = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/{}/status"
    limits = "grep -v 'open files' /proc/{}/limits"
    async with warm_lab() as started:
        (pid,) = await started.kernel_parents()
        for look in (rights, limits, "readlink /proc/{}/ns/*", "cat /proc/{}/cgroup", "readlink /proc/{}/root"):
            assert await started.inside(look.format(pid)) == await started.inside(look.format(2)), look
        opened = (await started.inside(f"readlink /proc/{pid}/fd/*")).split()
        assert sorted({name.partition(":")[0] for name in opened}) == ["/dev/null", "pipe", "socket"]
        assert sum(name.startswith("socket") for name in opened) == 1
        # A socket without a name: the inode is listed without one.
        (inode,) = [found for name in opened for found in re.findall(r"socket:\[(\d+)\]", name)]
        (line,) = [row for row in (await started.inside("cat /proc/net/unix")).splitlines() if inode in row.split()]
        assert len(line.split()) == 7
        assert (await started.inside(f"tr '\\0' ' ' < /proc/{pid}/cmdline")).strip() == "codehub-kernels"
        assert await started.inside(f"cat /proc/{pid}/environ | wc -c") == "0"
        kernel = await started.kernel()
        held = HELD.replace("INODE", inode)
        assert await kernel.run(held) == "False\n"


HELD = """
import os
def target(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""
print("socket:[INODE]" in map(target, os.listdir("/proc/self/fd")))
"""
