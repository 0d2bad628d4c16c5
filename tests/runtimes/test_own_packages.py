"""Python packages that a person installs: by `pip install`, into the home, found by every Python of the workspace.

The platform's own environment is read-only inside. A wheel is made by hand, so that nothing is fetched.
"""

import asyncio
import io
import os
import pathlib
import signal
import sys
import zipfile

import pytest

from codehub.runtimes import sandbox
from codehub.runtimes.base import Cold, Runtime
from codehub.runtimes.sandbox import Machine, SandboxSpec
from codehub.templates import loader
from tests.contracts.harness import DOCKER, SANDBOXES, answering, fresh_any, fresh_runtime, running
from tests.contracts.workloads import SERVER, server, workload
from tests.runtimes.test_warm import begun, importing, loaded, modules

__all__ = ["modules"]  # a fixture

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"/home/alice/.local/lib/{VERSION}/site-packages"
SHOW = "python3 -c 'import greeting; print(greeting.WORDS, greeting.__file__)'"


def wheel(name: str) -> bytes:
    """Of one module that says hello."""
    about = f"{name}-1.0.dist-info"
    members = {
        f"{name}.py": "WORDS = 'hello'\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n",
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in members.items():
            archive.writestr(path, text)
    return file.getvalue()


async def install(runtime: Runtime, id_: str, name: str) -> str:
    file = f"{name}-1.0-py3-none-any.whl"
    await runtime.put(id_, {file: wheel(name)})
    done = await runtime.exec(id_, ["sh", "-c", f"python3 -m pip install --no-index ./{file} 2>&1"])
    assert done.exit_code == 0, done.output.decode()
    return done.output.decode()


@pytest.mark.parametrize("kind", [*SANDBOXES, pytest.param(DOCKER, marks=pytest.mark.docker)])
async def test_pip_installs_into_the_home_and_python_finds_it_there_also_after_a_sleep(
    kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == DOCKER:
        request.getfixturevalue("docker_engine")
    async with fresh_any(kind) as (runtime, _):
        await running(runtime, workload(server()))
        await install(runtime, "w1", "greeting")
        await runtime.stop("w1", 5)
        await running(runtime, workload(server()))
        shown = await runtime.exec("w1", ["sh", "-c", SHOW])
        assert shown.output.decode() == f"hello {PACKAGES}/greeting.py\n"


NOTEBOOK = """
from jupyter_client.manager import start_new_kernel

kernel, client = start_new_kernel(kernel_name="python3")
said = []
for cell in ("%pip install --no-index ./greeting-1.0-py3-none-any.whl", "import greeting; print(greeting.WORDS)"):
    client.execute_interactive(cell, timeout=60, output_hook=lambda told: said.append(told["content"].get("text", "")))
print("".join(said), end="")
client.stop_channels()
kernel.shutdown_kernel()
"""


async def test_what_a_notebook_installs_is_there_in_its_next_cell() -> None:
    """Also the very first package of a home: Python looks only into folders that were there when it began."""
    template = loader.read(loader.BUILTIN / "jupyterlab.toml")
    async with fresh_runtime("namespaces") as (runtime, _):
        await begun(runtime, "w1", template)
        await runtime.put("w1", {"greeting-1.0-py3-none-any.whl": wheel("greeting"), "notebook.py": NOTEBOOK.encode()})
        done = await runtime.exec("w1", ["python3", "notebook.py"], timeout_seconds=120)
        assert done.output.decode().endswith("hello\n"), done.output.decode()


SAYS = """
import sys
try:
    import greeting
    open("said", "w").write(" ".join([greeting.WORDS, *sys.path]))
except ImportError:
    pass
"""


async def test_a_warm_start_has_them_as_a_cold_one(modules: pathlib.Path) -> None:
    (modules / "plain.py").write_text("NOTHING = 1\n")
    template = importing(modules, "plain", SAYS + SERVER)
    async with fresh_runtime("namespaces") as (runtime, _):
        assert await begun(runtime, "w1", template) is Cold.NOT_LOADED
        await loaded(runtime)
        await install(runtime, "w1", "greeting")
        said = []
        for reasons in ({None}, {Cold.NOT_LOADED, Cold.OUTDATED}):
            await runtime.stop("w1", 5)
            assert await runtime.start(workload(template, "w1", "alice")) in reasons
            await answering(runtime, "w1")
            said.append((await runtime.exec("w1", ["cat", "/home/alice/said"])).output)
            os.kill(await loaded(runtime), signal.SIGKILL)
        assert said[0] == said[1]
        assert said[0].startswith(b"hello ")


async def test_a_package_that_a_loaded_module_would_use_makes_the_start_cold(modules: pathlib.Path) -> None:
    (modules / "greets.py").write_text("try:\n    import greeting\nexcept ImportError:\n    greeting = None\n")
    show = "import greets\nopen('said', 'w').write(str(greets.greeting and greets.greeting.WORDS))\n" + SERVER
    template = importing(modules, "greets", show)
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(template)
        await loaded(runtime)
        assert await begun(runtime, "w1", template) is None
        await install(runtime, "w1", "greeting")
        await runtime.stop("w1", 5)
        assert await runtime.start(workload(template, "w1", "alice")) is Cold.OWN_PACKAGES
        await answering(runtime, "w1")
        assert (await runtime.exec("w1", ["cat", "/home/alice/said"])).output == b"hello"
        assert await begun(runtime, "w2", template) is None  # somebody else's start is as quick as ever


@pytest.mark.parametrize("trap", ["ln -s /etc .local", "mkdir .local && ln -s / .local/lib", "touch .local"])
async def test_a_home_with_something_else_in_their_place_starts_cold(modules: pathlib.Path, trap: str) -> None:
    (modules / "plain.py").write_text("NOTHING = 1\n")
    template = importing(modules, "plain", SERVER)
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.warm_up(template)
        await loaded(runtime)
        assert await begun(runtime, "w1", template) is None
        await runtime.exec("w1", ["sh", "-c", f"cd; rm -rf .local; {trap}"])
        await runtime.stop("w1", 5)
        assert await runtime.start(workload(template, "w1", "alice")) is Cold.OWN_PACKAGES
        await asyncio.wait_for(answering(runtime, "w1"), 60)


def test_an_environment_says_inside_that_homes_count_and_nothing_else_of_it_changes() -> None:
    text = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n"
    assert sandbox.with_user_site(text) == text.replace("false", "true")
    assert sandbox.with_user_site(text.replace("false", "true")) == ""
    assert sandbox.with_user_site("") == ""
    machine = Machine((("/usr", None),), (), ("/srv/venv",), (), "changed", ("/srv/venv/pyvenv.cfg",))
    box = SandboxSpec("w1", "alice", None, "/h", "/s", "/e")
    assert ("/srv/venv/pyvenv.cfg", "/e/pyvenv.cfg") in [(m.target, m.source) for m in sandbox.mounts(machine, box)]
    assert sandbox.etc_files(machine, box, "", 1, 1)["pyvenv.cfg"] == "changed"
