"""Warm starts: a copy is the program that a cold start would be, and whatever is wrong costs only a cold start."""

import asyncio
import dataclasses
import json
import os
import pathlib
import signal
import sys
import textwrap
from collections.abc import Iterator

import pytest

from codehub.runtimes import warm
from codehub.runtimes.base import Cold, Workload
from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.shepherd import python_program
from codehub.runtimes.shepherd.python_program import CODE, MODULE, SCRIPT, PythonProgram
from codehub.templates.model import ProcessSpec, Template
from tests.contracts.harness import WARM, WarmRuntime, answering, ended, fresh_runtime, log_has, running, until
from tests.contracts.workloads import SERVER, server, workload
from tests.places import a_place

# What a program can find out about itself, a name and a value each. `-I` is not given: the home counts.
PROBES = """
import asyncio, ctypes, gc, json, locale, logging, multiprocessing.process, os, pathlib, platform, random, resource
import signal, site, socket, stat, sys, tempfile, threading, time, uuid, warnings
def file(name):
    with open(f"/proc/self/{name}", errors="replace") as f:
        return f.read()
def fields(*names):
    return [line for line in file("status").splitlines() if line.split(":")[0] in names]
def descriptors():
    # One more is open while they are listed.
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}").split(":")[0]
        except OSError:
            pass
    return found
umask = os.umask(0); os.umask(umask)
told = {
    "environment": dict(os.environ),
    "C environment": ctypes.CDLL(None).getenv(b"HOME") != 0,
    "argv": sys.argv,
    "original argv": sys.orig_argv,
    "command line": file("cmdline"),
    "environment as others see it": sorted(file("environ").split("\\0")),
    "name": file("comm"),
    "executable": os.readlink("/proc/self/exe"),
    "cwd": os.getcwd(),
    "umask": umask,
    "limits": file("limits"),
    "locale": [locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding()],
    "time zone": [time.tzname, time.localtime(0)[3]],
    "temp directory": tempfile.gettempdir(),
    "user site": [site.USER_BASE, site.USER_SITE, site.ENABLE_USER_SITE],
    "home": [str(pathlib.Path.home()), os.path.expanduser("~")],
    "host": [platform.node(), socket.gethostname(), platform.platform()],
    "descriptors": descriptors(),
    "signals": {str(n): str(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
    "signal state": fields("SigBlk", "SigIgn", "SigCgt", "ShdPnd"),
    "rights": fields("Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"),
    "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
    "processes": [os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0)],
    "memory may be looked at by oneself": os.access("/proc/self/mem", os.R_OK),
    "oom": file("oom_score_adj"),
    "groups": file("cgroup").count("\\n"),
    "path": sys.path,
    "flags": str(sys.flags),
    "prefix": [sys.prefix, sys.base_prefix, sys.executable],
    "main": {k: str(v)[:60] for k, v in globals().items() if k.startswith("__") and k != "__loader__"},
    "multiprocessing": [multiprocessing.process.ORIGINAL_DIR, len(multiprocessing.process.current_process().authkey)],
    "ours": sorted(name for name in sys.modules if name.startswith("codehub")),
    "output": [sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.encoding, sys.stdin.isatty()],
    "loop": asyncio.get_event_loop_policy().__class__.__name__,
    "warnings": len(warnings.filters),
    "garbage collector": [gc.isenabled(), gc.get_threshold()],
    "since": time.time() - logging._startTime < 60,
}
fresh = {
    "random": random.random(),
    "uuid": str(uuid.uuid4()),
    "uuid1": str(uuid.uuid1()),
    "authkey": multiprocessing.process.current_process().authkey.hex(),
    "temporary name": next(tempfile._get_candidate_names()),
    "urandom": os.urandom(8).hex(),
}
with open(os.path.expanduser("~/told.json"), "w") as f:
    json.dump([told, fresh], f)
"""
WITH_PROBES = PROBES + SERVER


def probing() -> Template:
    """As IDEs are: a script that names its interpreter would be found the same way."""
    command = ("python3", "-c", WITH_PROBES, "{socket}", "--an", "argument with spaces")
    return Template("probe", "probe", process=ProcessSpec(command, env={"TZ": "Asia/Seoul", "OWN": "{home}/own"}))


async def told(runtime: ProcessRuntime, id_: str) -> tuple[dict[str, object], dict[str, object]]:
    given = workload(probing(), id_, "alice", EXTRA="given at the start")
    await running(runtime, given)
    shown = await runtime.exec(id_, ["cat", "/home/alice/told.json"])
    first, second = json.loads(shown.output)
    return first, second


async def test_a_warm_program_finds_itself_as_a_cold_one_does() -> None:
    """Everything that it can ask about itself, but for the pids of others and its own memory."""
    async with fresh_runtime("namespaces") as (runtime, _):
        cold, _ = await told(runtime, "w1")
    async with fresh_runtime(WARM) as (runtime, _):
        warm_, _ = await told(runtime, "w1")
    assert {name: (cold[name], warm_[name]) for name in cold if cold[name] != warm_[name]} == {}


async def test_what_is_random_is_another_in_each_copy() -> None:
    async with fresh_runtime(WARM) as (runtime, _):
        _, one = await told(runtime, "w1")
        _, other = await told(runtime, "w2")
    assert [name for name in one if one[name] == other[name]] == []


KEEPS = """
import os, pathlib, platform, functools
HOME, NODE = os.path.expanduser("~"), platform.node()
class Settings:
    folder = HOME + "/settings"
    nested = {"a": [HOME], "b": (HOME, 1)}
def default(where=HOME): return where
PATH = pathlib.Path(HOME) / "path"
seen = [os.environ["USER"]]
def closure(user=None):
    kept = os.environ["USER"]
    return lambda: kept
said = closure()
"""
SHOW_KEPT = (
    """
import keeps, json
said = [keeps.HOME, keeps.NODE, keeps.Settings.folder, keeps.Settings.nested["a"][0], keeps.Settings.nested["b"][0],
        keeps.default(), str(keeps.PATH), keeps.seen[0], keeps.said()]
open("kept.json", "w").write(json.dumps(said))
"""
    + SERVER
)


def importing(folder: pathlib.Path, module: str, script: str = SERVER, *arguments: str) -> Template:
    """A program with a module that it has from outside its home, and finds as a warm parent of it does."""
    process = ProcessSpec(
        ("python3", "-c", f"import {module}\n{script}", *arguments, "{socket}"),
        env={"PYTHONPATH": str(folder)},
        warm=True,
        preload=(module,),
        paths=(str(folder),),
    )
    return Template("module", "module", process=process)


@pytest.fixture
def modules() -> Iterator[pathlib.Path]:
    """A folder of modules that everybody may read."""
    with a_place(on_disk=True) as folder:
        folder.chmod(0o755)
        yield folder


async def test_what_modules_keep_of_their_home_is_each_workspaces_own(modules: pathlib.Path) -> None:
    (modules / "keeps.py").write_text(textwrap.dedent(KEEPS))
    template = importing(modules, "keeps", SHOW_KEPT)
    async with fresh_runtime(WARM) as (runtime, _):
        for id_, user in (("w1", "alice"), ("w2", "bob")):
            await running(runtime, workload(template, id_, user))
            shown = await runtime.exec(id_, ["cat", f"/home/{user}/kept.json"])
            home = f"/home/{user}"
            expected = [home, id_, f"{home}/settings", home, home, home, f"{home}/path", user, user]
            assert json.loads(shown.output) == expected


UNFIT = {
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
    "files": "kept = open('/dev/null')",
    "a set of paths": "import os\nkept = {os.path.expanduser('~')}",
    "memory": "kept = bytearray(2 << 30)",
    "an exit": "import os\nos._exit(3)",
    "an error": "raise RuntimeError('no')",
}


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
async def test_what_can_not_be_shared_is_started_cold(modules: pathlib.Path, text: str) -> None:
    (modules / "odd.py").write_text("import sys\nif 'ide' not in sys.argv:\n" + textwrap.indent(text, "    "))
    template = importing(modules, "odd", "import sys; sys.argv.remove('ide')\n" + SERVER, "ide")
    async with fresh_runtime("namespaces", warm_memory_mb=256) as (runtime, _):
        await runtime.create_volume("w1", "g1")
        await runtime.warm_up(template)
        await asyncio.gather(*runtime._loads)
        assert await runtime.start(workload(template)) is Cold.UNFIT
        await answering(runtime, "w1")


async def begun(runtime: ProcessRuntime, id_: str, template: Template) -> Cold | None:
    await runtime.create_volume(id_, "g1")
    cold = await runtime.start(Workload(id_, "alice", template, {}))
    await answering(runtime, id_)
    return cold


def warm_server() -> Template:
    template = server()
    assert template.process
    return dataclasses.replace(template, process=dataclasses.replace(template.process, warm=True))


async def loaded(runtime: ProcessRuntime) -> int:
    """The pid of the one parent there is, once it has loaded everything."""
    await asyncio.gather(*runtime._loads)
    (pid,) = runtime._parents.pids().values()
    return pid


async def test_the_first_start_is_cold_and_those_after_it_are_warm() -> None:
    async with fresh_runtime("namespaces") as (runtime, _):
        assert await begun(runtime, "w1", warm_server()) is Cold.NOT_LOADED
        await loaded(runtime)
        assert await begun(runtime, "w2", warm_server()) is None


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
async def test_a_parent_that_is_killed_or_stopped_costs_a_cold_start(
    fate: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "BEGIN_SECONDS", 1.0)
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(warm_server())
        pid = await loaded(runtime)
        assert await begun(runtime, "w1", warm_server()) is None
        os.kill(pid, fate)
        if fate is not signal.SIGSTOP:
            await until(lambda: gone(runtime))
        assert await begun(runtime, "w2", warm_server()) in {Cold.NOT_LOADED, Cold.OUTDATED}
        assert await loaded(runtime) != pid  # and there is another one
        assert await begun(runtime, "w3", warm_server()) is None
        assert set(await runtime.containers()) == {"w1", "w2", "w3"}  # what it was copied to does not mind


async def gone(runtime: ProcessRuntime) -> bool:
    return not runtime._parents.pids()


async def test_a_changed_installation_is_not_served_from_memory(modules: pathlib.Path) -> None:
    (modules / "version.py").write_text("NUMBER = 1\n")
    show = "import version\nopen('said', 'w').write(str(version.NUMBER))\n" + SERVER
    template = importing(modules, "version", show)
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(template)
        await loaded(runtime)
        assert await begun(runtime, "w1", template) is None
        (modules / "version.py").write_text("NUMBER = 22\n")
        assert await begun(runtime, "w2", template) is Cold.OUTDATED
        await loaded(runtime)
        assert await begun(runtime, "w3", template) is None
        shown = [(await runtime.exec(id_, ["cat", "/home/alice/said"])).output for id_ in ("w1", "w2", "w3")]
    assert shown == [b"1", b"22", b"22"]


async def test_an_idle_parent_ends_by_itself_and_one_whose_platform_is_gone() -> None:
    async with fresh_runtime("namespaces", warm_idle_seconds=1.0) as (runtime, _):
        await runtime.warm_up(warm_server())
        await loaded(runtime)
        await until(lambda: gone(runtime))
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(warm_server())
        await loaded(runtime)
        (parent,) = runtime._parents._ready.values()
        parent._control.close()
        await until(lambda: gone(runtime))


async def test_a_parent_has_nothing_of_ours_and_cannot_be_reached() -> None:
    """Its environment, its files and its memory are those of a process that belongs to nobody."""
    secret = "the-platforms-own-secret-of-this-test"
    os.environ["CODEHUB_TEST_SECRET"] = secret
    try:
        async with fresh_runtime("namespaces") as (runtime, folder):
            await runtime.warm_up(warm_server())
            pid = await loaded(runtime)
            await running(runtime, workload(warm_server(), "w1", token="only-for-w1"))
            await running(runtime, workload(warm_server(), "w2", token="only-for-w2"))
            proc = pathlib.Path(f"/proc/{pid}")
            assert secret not in (proc / "environ").read_text()
            opened = {str(fd.readlink()) for fd in (proc / "fd").iterdir()}
            assert {name.partition(":")[0] for name in opened} == {"/dev/null", "socket"}
            memory = _memory(pid)
            for kept_back in (secret, "only-for-w1", str(folder)):
                assert kept_back.encode() not in memory
            # And from inside: no other process is there, whatever one looks for.
            seen = await runtime.exec("w1", ["sh", "-c", f"ls /proc | grep -x '[0-9]*'; kill -9 {pid}; true"])
            assert runtime._parents.pids()
            assert str(pid).encode() not in seen.output.split(b"kill")[0].split()
            own = await runtime.exec("w2", [sys.executable, "-c", SCAN, "only-for-" + "w1"])
            assert own.output.strip() == b"no", own.output
    finally:
        del os.environ["CODEHUB_TEST_SECRET"]


SCAN = """
import sys
wanted = sys.argv[1].encode()
found = False
with open("/proc/2/maps") as maps, open("/proc/2/mem", "rb", 0) as memory:
    for line in maps:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if line.split()[1].startswith("rw"):
            try:
                memory.seek(start); found |= wanted in memory.read(end - start)
            except OSError:
                pass
print("yes" if found else "no")
"""


def _memory(pid: int) -> bytes:
    found = b""
    process = pathlib.Path(f"/proc/{pid}")
    with (process / "mem").open("rb", 0) as memory:
        for line in (process / "maps").read_text().splitlines():
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                memory.seek(start)
                found += memory.read(end - start)
    return found


async def test_what_a_program_raises_and_returns_ends_it_as_it_would_a_cold_one() -> None:
    """Exit codes, what is printed at the end, and what was to be done at exit."""
    programs = {
        "import sys; print('out'); sys.exit(7)": (7, b"out"),
        "raise OSError(5, 'its own trouble')": (1, b'File "<string>", line 1, in <module>\nOSError: [Errno 5] its own'),
        "import atexit; atexit.register(print, 'at the end')": (0, b"at the end"),
        "import os; os.kill(os.getpid(), 9)": (137, b""),
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": (143, b""),
        "x = (": (1, b"SyntaxError"),
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('last'))).start()": (
            0,
            b"last",
        ),
    }
    async with fresh_runtime(WARM) as (runtime, _):
        for number, (code, (exit_code, said)) in enumerate(programs.items()):
            id_ = f"w{number}"
            await runtime.create_volume(id_, "g1")
            await runtime.start(workload(Template(id_, id_, process=ProcessSpec(("python3", "-c", code))), id_))
            await ended(runtime, id_)
            left = await runtime.last_exit(id_)
            assert left
            assert left.code == exit_code, (code, left)
            assert said in left.log_tail.encode(), (code, left)
            assert b"codehub" not in left.log_tail.encode(), left.log_tail


async def test_a_script_a_module_and_code_are_run_as_an_interpreter_runs_them(modules: pathlib.Path) -> None:
    script = modules / "tool"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint(__name__, __file__, sys.argv, sys.path[0], flush=True)\n")
    script.chmod(0o755)
    (modules / "told.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv[1:], flush=True)\n")
    for command, said in (
        ((str(script), "x"), f"__main__ {script} ['{script}', 'x'] {modules}"),
        (("python3", "-u", "-m", "told", "y"), "__main__ told ['y']"),
    ):
        template = Template(
            "t", "t", process=ProcessSpec(command, env={"PYTHONPATH": str(modules)}, paths=(str(modules),))
        )
        async with fresh_runtime(WARM) as (runtime, _):
            await runtime.create_volume("w1", "g1")
            assert await runtime.start(workload(template)) is None
            assert await log_has(runtime, "w1", said.encode())  # unbuffered, it is written word by word


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["/usr/bin/python3", "-u", "-c", "x", "a"], PythonProgram("/usr/bin/python3", ("-u",), CODE, "x", ("a",))),
        (["/v/bin/python3.12", "-I", "-m", "m"], PythonProgram("/v/bin/python3.12", ("-I",), MODULE, "m", ())),
        (["/v/bin/python", "/a/b", "-c"], PythonProgram("/v/bin/python", (), SCRIPT, "/a/b", ("-c",))),
        (["/v/bin/python", "b"], None),  # wherever that is
        (["/v/bin/python"], None),
        (["/v/bin/python", "-X", "dev", "-c", "x"], None),  # may mean anything
        (["/bin/sh", "-c", "x"], None),
        (["/nonexistent/tool"], None),
        (["/usr/bin/env", "python3"], None),
    ],
)
def test_only_what_is_certainly_a_python_program_is_one(command: list[str], found: PythonProgram | None) -> None:
    assert python_program.of(command) == found


async def test_a_home_with_what_an_interpreter_reads_at_its_start_is_started_cold() -> None:
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(warm_server())
        await loaded(runtime)
        await runtime.create_volume("w1", "g1")
        for name in ("PYTHONSTARTUP", "LD_PRELOAD", "LC_ALL"):
            cold = await runtime.start(workload(warm_server(), "w1", **{name: "x" if name == "PYTHONSTARTUP" else ""}))
            assert cold is (None if name != "PYTHONSTARTUP" else Cold.ENVIRONMENT)
            await answering(runtime, "w1")
            await runtime.stop("w1", 0)


async def test_many_at_once_are_all_copies_of_one() -> None:
    async with fresh_runtime(WARM) as (runtime, _):
        assert isinstance(runtime, WarmRuntime)
        await runtime.loaded(warm_server())
        names = [f"w{number}" for number in range(12)]
        assert await asyncio.gather(*(begun(runtime, name, warm_server()) for name in names)) == [None] * len(names)
        assert len(runtime._parents.pids()) == 1
        assert len(await runtime.containers()) == len(names)


async def test_turned_off_nothing_is_loaded() -> None:
    async with fresh_runtime("namespaces", warm_starts="off") as (runtime, _):
        await runtime.warm_up(warm_server())
        assert await begun(runtime, "w1", warm_server()) is None
        assert not runtime._loads
        assert not runtime._parents.pids()
