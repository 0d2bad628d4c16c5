"""Becoming a Python program without starting it anew: what `execve` and a new interpreter do, in a copy of `warm`.

Called where a cold start would call `execve`: inside the sandbox, with all rights given up. `Becoming` raises, so that
nothing of the shepherd is left on the stack, and `launch.warm_parent`'s few lines, at the very top, call `run`. What is
still not as in a new interpreter is said in docs/templates.md.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and a program.
# ruff: noqa: PTH100, PTH109, PTH120, PTH123

import contextlib
import ctypes
import importlib
import linecache
import logging
import os
import platform
import posix
import runpy
import signal
import site
import struct
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from codehub.runtimes.shepherd import frozen, python_program
from codehub.runtimes.shepherd.python_program import CODE, MODULE, SCRIPT, PythonProgram
from codehub.runtimes.shepherd.spec import Spec
from codehub.system import kernel

PR_SET_MM, PR_SET_MM_MAP = 35, 14
KERNELS = "codehub.jupyter.kernels"
SYSTEM_SITE = "include-system-site-packages=true"
_kept: list[Any] = []  # memory that the kernel was told of


class Offer(NamedTuple):
    """For the program: where its kernels can be asked for, and the process that is asked. See `kernels`."""

    fd: int
    pid: int


class Run(BaseException):
    """Unwinds the copy down to where `run` is called; no `Exception`, so that nothing on the way catches it."""

    def __init__(self, program: PythonProgram, kernels: Offer | None = None) -> None:
        super().__init__()
        self.program = program
        self.kernels = kernels


class Becoming:
    """What to do where a cold start would `execve`."""

    def __init__(
        self,
        places: frozen.Places,
        values: Mapping[str, str],
        offer: "Callable[[PythonProgram, Spec, Become], Offer | None]",
    ) -> None:
        self._places = places
        self._values = values
        self._offer = offer

    def __call__(self, spec: Spec) -> NoReturn:
        program = python_program.of(spec.command)
        if program is None:
            raise OSError(f"{spec.command[0]} is no Python program")
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # as after a change of program: one's own processes can be debugged
        # As early as may be: what is written to from here on is not shared with it.
        kernels = self._offer(program, spec, self._become)
        self._become(program, spec.environment, spec.directory, kernels)

    def _become(
        self, program: PythonProgram, environment: Mapping[str, str], directory: str, kernels: Offer | None = None
    ) -> NoReturn:
        for number, handler in _SIGNALS.items():
            signal.signal(number, handler)
        self._places.replace(self._values)
        renew(environment, directory)
        show(program.command_line, environment, program.name)
        raise Run(program, kernels)


Become = Callable[[PythonProgram, Mapping[str, str], str], NoReturn]


# As a new interpreter sets them.
_SIGNALS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGPIPE: signal.SIG_IGN,
    signal.SIGXFSZ: signal.SIG_IGN,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGCHLD: signal.SIG_DFL,
}


def renew(environment: Mapping[str, str], directory: str) -> None:
    """What the standard library remembers of its process. `random` and `ssl` see to it themselves after a fork."""
    os.environ.clear()
    os.environ.update(environment)
    posix.environ.clear()
    posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in environment.items()})
    time.tzset()
    vars(platform)["_uname_cache"] = None
    vars(platform)["_platform_cache"].clear()
    vars(logging)["_startTime"] = time.clock_gettime(time.CLOCK_REALTIME)
    if "HOME" in environment:
        site.USER_BASE = site.USER_SITE = None
        site.getusersitepackages()
        if site.ENABLE_USER_SITE is False and _is_open():
            _open_user_site()
    processes = sys.modules.get("multiprocessing.process")
    if processes:
        vars(processes)["ORIGINAL_DIR"] = directory
        processes.current_process().authkey = os.urandom(32)
    importlib.invalidate_caches()
    linecache.clearcache()


def _is_open() -> bool:
    """Does this environment say, inside, that packages of the home and of the system count? Outside it may not."""
    with contextlib.suppress(OSError), open(f"{sys.prefix}/pyvenv.cfg", encoding="utf-8") as file:
        return any(line.replace(" ", "").strip().lower() == SYSTEM_SITE for line in file)
    return False


def _open_user_site() -> None:
    """What `site` does then: after the environment's own packages come those of the home, and then the system's."""
    site.PREFIXES[:] = dict.fromkeys([sys.prefix, sys.base_prefix, sys.base_exec_prefix])
    site.ENABLE_USER_SITE = True
    known = {os.path.abspath(path) for path in sys.path}
    site.addsitepackages(site.addusersitepackages(known))


def show(command_line: Sequence[str], environment: Mapping[str, str], name: str) -> None:
    """What others see of this process: its name, its command line, its environment."""
    words = b"".join(os.fsencode(word) + b"\0" for word in command_line)
    pairs = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    buffer = ctypes.create_string_buffer(words + pairs, len(words + pairs))
    _kept.append(buffer)
    start = ctypes.addressof(buffer)
    middle, end = start + len(words), start + len(words + pairs)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_long]
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        stat = file.read()
    fields = [int(word) if word.lstrip("-").isdigit() else 0 for word in stat[stat.rindex(")") + 2 :].split()]
    code, data, heap = fields[23:25], fields[42:44], fields[44]
    layout = struct.pack("=12QIi", *code, *data, heap, libc.sbrk(0), fields[25], start, middle, middle, end, 0, 0, -1)
    with contextlib.suppress(OSError):  # a kernel without it shows the parent's: a name, and nothing that matters
        _set_memory_map(libc, layout)
    kernel.set_name(name)


def _set_memory_map(libc: ctypes.CDLL, layout: bytes) -> None:
    if libc.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.c_char_p(layout), ctypes.c_ulong(len(layout)), 0):
        raise OSError(ctypes.get_errno(), "prctl PR_SET_MM_MAP")


def run(program: PythonProgram, added_to_path: str, kernels: Offer | None) -> None:
    """At the top of the stack: from here on this is the program. Its end is the interpreter's own end."""
    _forget_ourselves(added_to_path)
    if kernels:
        _pass_on(kernels)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    sys.orig_argv[:] = program.command_line
    sys.argv[:] = ["-m" if program.kind == MODULE else "-c" if program.kind == CODE else program.target]
    sys.argv += program.arguments
    try:
        _execute(program, main)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as e:  # noqa: BLE001 (what nobody handles is told as an interpreter tells it)
        own = e.__traceback__
        for _ in range(2):  # this function and the next
            own = own.tb_next if own else None
        sys.excepthook(type(e), e.with_traceback(own), own)
        sys.exit(1)


def _execute(program: PythonProgram, main: types.ModuleType) -> None:
    folder = {SCRIPT: os.path.dirname(os.path.realpath(program.target)), MODULE: os.getcwd(), CODE: ""}[program.kind]
    if not program.isolated:
        sys.path.insert(0, folder)
    if program.kind == MODULE:
        vars(runpy)["_run_module_as_main"](program.target)  # as the interpreter itself does
        return
    text: str | bytes = program.target
    if program.kind == SCRIPT:
        main.__dict__["__file__"] = program.target
        main.__dict__["__cached__"] = None
        with open(program.target, "rb") as file:
            text = file.read()
    code = compile(text, program.target if program.kind == SCRIPT else "<string>", "exec", dont_inherit=True)
    exec(code, main.__dict__)  # noqa: S102 (it is what was to be started)


def _forget_ourselves(added_to_path: str) -> None:
    """Our modules are no part of the program, nor is the folder that they were found in."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "codehub"]:
        del sys.modules[name]
    if added_to_path:
        sys.path.remove(added_to_path)


def _pass_on(kernels: Offer) -> None:
    """To the part of ours that the program itself loads. Where it is not installed, kernels are cold."""
    try:
        vars(importlib.import_module(KERNELS))["offered"] = tuple(kernels)
    except ImportError:
        os.close(kernels.fd)
