"""From inside a workspace: system calls that are refused, and programs that work all the same."""

import errno
import json
import os
import shutil
import struct
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.shepherd import seccomp
from codehub.runtimes.shepherd.shares import FILTER, NESTED
from codehub.templates.model import ProcessSpec, Template
from tests.contracts.harness import KINDS, fresh_runtime, running
from tests.contracts.workloads import server, workload

pytestmark = pytest.mark.asyncio(loop_scope="module")
MACHINE = os.uname().machine
Row = tuple[str, int, tuple[int | str, ...]]
COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE, 0)
NEW_USER, NEW_NETWORK, THREAD = 0x10000000, 0x40000000, 0x11
# What is tried, by its number on x86-64 and arm64, with what; and what comes of it.
REFUSED = [
    ("unshare a user namespace", (272, 97), (NEW_USER,), errno.EPERM),
    ("unshare a network", (272, 97), (NEW_NETWORK,), errno.EPERM),
    ("clone into a user namespace", (56, 220), (NEW_USER | THREAD, 0, 0, 0, 0), errno.EPERM),
    ("clone3", (435, 435), (0, 0), errno.ENOSYS),
    ("setns", (308, 268), (-1, NEW_USER), errno.EPERM),
    ("mount", (165, 40), (0, 0, 0, 0, 0), errno.EPERM),
    ("umount2", (166, 39), (0, 0), errno.EPERM),
    ("fsopen", (430, 430), (0, 0), errno.EPERM),
    ("open_tree", (428, 428), (-100, 0, 1), errno.EPERM),
    ("add_key", (248, 217), (0, 0, 0, 0, 0), errno.ENOSYS),
    ("keyctl", (250, 219), (0, -3, 1), errno.ENOSYS),
    ("request_key", (249, 218), (0, 0, 0, 0), errno.ENOSYS),
    ("bpf", (321, 280), (0, 0, 0), errno.EPERM),
    ("perf_event_open", (298, 241), (0, 0, 0, 0, 0), errno.EPERM),
    ("userfaultfd", (323, 282), (0,), errno.EPERM),
    ("io_uring_setup", (425, 425), (1, 0), errno.ENOSYS),
    ("io_setup", (206, 0), (1, 0), errno.ENOSYS),
    ("init_module", (175, 105), (0, 0, 0), errno.EPERM),
    ("kexec_load", (246, 104), (0, 0, 0, 0), errno.EPERM),
    ("reboot", (169, 142), (0, 0, 0, 0), errno.EPERM),
    ("swapon", (167, 224), (0, 0), errno.EPERM),
    ("push into a terminal", (16, 29), (0, 0x5412, 0), errno.EPERM),
    ("a socket to the host of a virtual machine", (41, 198), (40, 1, 0), errno.EAFNOSUPPORT),
    ("a socket to the kernel's ciphers", (41, 198), (38, 5, 0), errno.EAFNOSUPPORT),
    ("a packet socket", (41, 198), (17, 3, 0), errno.EAFNOSUPPORT),
    ("read implies execute", (135, 92), (0x0400000,), errno.EPERM),
    ("preallocation", (285, 47), ("file", 0, 0, 1 << 34), errno.EOPNOTSUPP),
    ("preallocation that keeps the size", (285, 47), ("file", 1, 0, 1 << 34), errno.EOPNOTSUPP),
    ("preallocation by ioctl", (16, 29), ("file", 0x4030582A, 0), errno.EPERM),
]
ALLOWED = [
    ("punch a hole", (285, 47), ("file", 3, 0, 4096)),
    ("a private file table", (272, 97), (0x400,)),
    ("addresses that a debugger wants", (135, 92), (0x40000,)),
]
TRY = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
file = open("probe", "wb+"); file.write(bytes(8192)); file.flush()
for name, number, arguments in json.loads(sys.argv[1]):
    values = [ctypes.c_long(file.fileno() if value == "file" else value) for value in arguments]
    result = libc.syscall(number, *values)
    print(json.dumps([name, ctypes.get_errno() if result == -1 else 0]), flush=True)
"""


OLD_CALLS = rb"""
#include <stdio.h>
static int old(int number, int a) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(0) : "memory");
  return result;
}
int main(void) {
  printf("%d %d %d %d\n", old(310, 0x10000000), old(120, 0x10000011), old(102, 1), old(20, 0) > 0);
}
"""
NODE = "const w = require('worker_threads'); new w.Worker('console.log(40 + 2)', {eval: true})"
COMMIT = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[ProcessRuntime]:
    async with fresh_runtime(request.param) as (runtime, _):
        await running(runtime, workload(server()))
        yield runtime


async def _try(runtime: ProcessRuntime, rows: Sequence[Row], id_: str = "w1") -> dict[str, int]:
    result = await runtime.exec(id_, ["python3", "-c", TRY, json.dumps(rows)])
    assert result.exit_code == 0, result.output
    return dict(json.loads(line) for line in result.output.splitlines())


async def test_what_a_workspace_does_not_need_is_refused(runtime: ProcessRuntime) -> None:
    rows = [(name, numbers[COLUMN], arguments) for name, numbers, arguments, _ in REFUSED]
    assert await _try(runtime, rows) == {name: error for name, _, _, error in REFUSED}
    rows = [(name, numbers[COLUMN], arguments) for name, numbers, arguments in ALLOWED]
    assert set((await _try(runtime, rows)).values()) == {0}


async def test_the_ide_itself_has_the_filter_too(runtime: ProcessRuntime) -> None:
    seen = await runtime.exec("w1", ["grep", "-h", "Seccomp:", "/proc/2/status", "/proc/self/status"])
    assert seen.output.split() == [b"Seccomp:", b"2", b"Seccomp:", b"2"]


async def test_other_numbers_for_the_same_calls_are_no_way_around(runtime: ProcessRuntime) -> None:
    """32-bit programs have numbers of their own, and their filter; the third kind of number is refused whole."""
    if MACHINE != "x86_64":
        return
    assert await _try(runtime, [("x32", 0x40000000 + 272, (NEW_USER,))]) == {"x32": errno.ENOSYS}
    compiled = await runtime.exec("w1", ["sh", "-c", "cat > a.c && gcc -o a a.c && ./a"], stdin=OLD_CALLS)
    assert compiled.output in {b"-1 -1 -38 1\n", b"-38 -38 -38 0\n"}, compiled.output  # or a kernel without them


@pytest.mark.parametrize(
    ("program", "script", "said"),
    [
        ("gcc", "echo 'int main(void) { return 7; }' > b.c && gcc -g -o b b.c; ./b; echo $?", b"7"),
        ("gdb", "cp /bin/true t; gdb -batch -ex run ./t 2>&1 | tail -n 1", b"exited normally"),
        ("strace", "strace -c true 2>&1 | tail -n 1", b"total"),
        ("node", f'node -e "{NODE}"', b"42"),
        ("python3", "python3 -c 'import multiprocessing as m; print(sum(m.Pool(2).map(abs, [-1, -2])))'", b"3"),
        ("git", f"{COMMIT} && git log --oneline | wc -l", b"1"),
    ],
)  # fmt: skip
async def test_what_people_work_with_works(runtime: ProcessRuntime, program: str, script: str, said: bytes) -> None:
    if shutil.which(program, path="/usr/bin:/bin"):
        result = await runtime.exec("w1", ["sh", "-c", script])
        assert said in result.output, result.output


async def test_a_template_may_ask_for_sandboxes_inside(runtime: ProcessRuntime) -> None:
    command = server().process
    assert command
    template = Template("nesting", "Nesting", process=ProcessSpec(command.command, nested_namespaces=True))
    await running(runtime, workload(template, "w2"))
    rows: list[Row] = [("user", (272, 97)[COLUMN], (NEW_USER,)), ("bpf", (321, 280)[COLUMN], (0, 0, 0))]
    tried = await _try(runtime, rows, "w2")
    assert tried == {"user": 0, "bpf": errno.EPERM}


async def test_a_filter_is_one_that_the_kernel_takes_and_ends_in_a_verdict() -> None:
    """For machines that this one is not, too: every jump lands inside, and the last step is a refusal."""
    for machine in ("x86_64", "aarch64"):
        for kind in (FILTER, NESTED):
            text = seccomp.program(machine, kind)
            assert text
            steps = [struct.unpack_from("=HBBI", text, at) for at in range(0, len(text), 8)]
            assert len(steps) < 4096
            for at, (code, then, otherwise, value) in enumerate(steps):
                assert code == 6 or at + 1 + (value if code == 5 else max(then, otherwise)) < len(steps)
            assert steps[-1][0] == 6
    assert seccomp.program("riscv64", FILTER) is None
