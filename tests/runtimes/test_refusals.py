"""Where workspaces cannot be kept apart only an admin's own are started, unless an operator wants all to be."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from codehub.runtimes.base import IsolationUnavailableError
from codehub.system import kernel
from tests.contracts import workloads
from tests.contracts.harness import fresh_runtime, processes_of, running
from tests.contracts.workloads import python, server, workload
from tests.servers import environment

ROOT = pathlib.Path(__file__).parents[2]
ASK = """
import asyncio, dataclasses, pathlib, sys
from codehub.runtimes.base import IsolationUnavailableError
from tests.contracts.harness import open_runtime
from tests.contracts.workloads import server, workload
async def main():
    runtime = open_runtime(pathlib.Path(sys.argv[1]), "auto")
    await runtime.create_volume("w1", "g1")
    try:
        await runtime.start(workload(server()))
    except IsolationUnavailableError as e:
        print(e)
    print((await runtime.isolation()).kind, dict(await runtime.containers()))
    await runtime.start(dataclasses.replace(workload(server()), trusted=True))
    print(list(await runtime.containers()))
    await runtime.stop("w1", 10)
asyncio.run(main())
"""


@pytest.fixture
def without_bubblewrap(tmp_path: pathlib.Path) -> Iterator[None]:
    """A PATH with what the runtime needs of the system, and no bwrap on it."""
    for name in ("chown", "du", "rm", "setpriv"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    with environment(PATH=str(tmp_path)):
        yield


async def test_bubblewrap_that_is_insisted_on_must_be_there(without_bubblewrap: None) -> None:
    async with fresh_runtime("bubblewrap") as (runtime, _):
        assert (await runtime.isolation()).kind is None
        await runtime.create_volume("w1", "g1")
        for trusted in (False, True):
            with pytest.raises(IsolationUnavailableError, match="bubblewrap is not installed"):
                await runtime.start(dataclasses.replace(workload(server()), trusted=trusted))
        assert await runtime.containers() == {}


async def test_namespaces_are_taken_with_nothing_installed(without_bubblewrap: None) -> None:
    async with fresh_runtime("auto") as (runtime, _):
        assert (await runtime.isolation()).kind == "namespaces"


def give_up_namespaces() -> None:
    """As in a container: root, or anybody, but not allowed to make namespaces."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        kernel.prctl(kernel.PR_CAPBSET_DROP, 21)  # CAP_SYS_ADMIN; gone at the exec that follows
        return
    kernel.unshare(kernel.CLONE_NEWUSER)
    kernel.map_user(uid, gid, uid, gid)
    pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")


def test_a_machine_without_namespaces_refuses_all_but_an_admins_own(data_dir: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(data_dir)],
        cwd=ROOT,
        preexec_fn=give_up_namespaces,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refusal, nothing, admins = done.stdout.splitlines()
    assert "nothing can keep workspaces apart here, so only admins may start one" in refusal
    assert "CODEHUB_ISOLATION=none" in refusal
    assert nothing == "None {}"
    assert admins == "['w1']"


async def test_unprotected_workspaces_run_when_that_is_wanted() -> None:
    async with fresh_runtime("none") as (runtime, _):
        await running(runtime, workload(server()))
        inside = await runtime.exec("w1", ["sh", "-c", "id -u; pwd"])
        assert inside.output.split()[1] == str(runtime._layout.of("w1").home).encode()
        assert inside.output.split()[0] != b"0"
        await runtime.stop("w1", 10)
        assert await runtime.containers() == {}


async def test_unprotected_workspaces_leave_nothing_behind_either() -> None:
    async with fresh_runtime("none") as (runtime, _):
        marked = workload(python(workloads.FORKING, "{socket}"), marker=f"plain-{os.getpid()}")
        await running(runtime, marked)
        assert len(processes_of(marked.environment["marker"])) >= 6
        await runtime.stop("w1", 5)
        assert processes_of(marked.environment["marker"]) == []
