"""The real `codehub serve` with CODEHUB_RUNTIME=docker, by its API and its front door: a workspace's whole life."""

import asyncio
import json
import pathlib
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from codehub.runtimes.docker.runtime import DockerRuntime
from tests import docker_engine as engines
from tests.activity.test_hold_in_terminals import path_of_terminal, type_into, workspace
from tests.places import a_place
from tests.platform import Platform, codehub

pytestmark = [pytest.mark.docker]
SECONDS = 600  # a limit for a machine that has other work, too


def on_docker(socket: str, folder: pathlib.Path, **more: str) -> Platform:
    chosen = {"CODEHUB_RUNTIME": "docker", "CODEHUB_DOCKER_SOCKET": socket, "CODEHUB_NETWORK": "none", **more}
    return Platform(folder / "data", first_start=False, **chosen)


@pytest.fixture(scope="session")
def code_server(docker_engine: str) -> None:
    """Takes minutes, once for each engine."""
    for target in engines.SLOW_IMAGES:
        engines.build(docker_engine, target)


@pytest.fixture
async def served(docker_engine: str) -> AsyncIterator[tuple[Platform, DockerRuntime]]:
    with a_place(on_disk=True) as folder:
        platform = on_docker(docker_engine, folder)
        await asyncio.to_thread(platform.start)
        runtime = engine_of(folder / "data")
        try:
            yield platform, runtime
        finally:
            await asyncio.to_thread(platform.stop)
            await clear(runtime)


def engine_of(data_dir: pathlib.Path) -> DockerRuntime:
    return engines.open_runtime(data_dir)


async def clear(runtime: DockerRuntime) -> None:
    await engines.clear(runtime)


async def until_phase(client: aiohttp.ClientSession, id_: str, phase: str) -> dict[str, Any]:
    while True:
        found = await workspace(client, id_)
        assert found.get("phase") != "ERROR" or phase == "ERROR", found
        if found["phase"] == phase and found["operation"] == "NONE":
            return found
        await asyncio.sleep(0.1)


async def wish(client: aiohttp.ClientSession, id_: str, state: str) -> dict[str, Any]:
    async with client.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": state}) as answer:
        assert answer.status in {200, 202}, await answer.text()
    return await until_phase(client, id_, state)


async def make(client: aiohttp.ClientSession, template: str) -> str:
    async with client.post("/api/v1/workspaces", json={"name": "lab", "template": template}) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])


async def typed(platform: Platform, template: str, id_: str, line: str) -> str:
    """Into a terminal, through the front door and the relay; the last word of what it prints is `end`."""
    async with platform.client() as client:
        path = await path_of_terminal(client, template, f"/w/{id_}/")
        async with client.ws_connect(path, origin=platform.url) as terminal:
            return await type_into(terminal, f"{line}; echo e''nd\r", "end\r\n")


async def test_vs_code_runs_sleeps_wakes_is_archived_and_restored(
    code_server: None, served: tuple[Platform, DockerRuntime]
) -> None:
    platform, runtime = served

    async def answers() -> None:
        """Its page by the front door, and a script of it that is no small one."""
        async with platform.client() as client:
            async with client.get(f"/w/{id_}/") as answer:
                page = await answer.text()
                assert (answer.status, "workbench" in page) == (200, True), page
            script = re.search(r'src="[^"]*?([^"/]*/static/out/[^"]*workbench[^"]*\.js)"', page)
            assert script, page
            async with client.get(f"/w/{id_}/{script[1]}") as answer:
                assert (answer.status, len(await answer.read()) > 1 << 20) == (200, True)

    async with asyncio.timeout(SECONDS), platform.client() as client:
        id_ = await make(client, "code-server")
        await until_phase(client, id_, "RUNNING")
        await answers()
        assert (await runtime.exec(id_, ["sh", "-c", "echo mine > note"])).exit_code == 0
        for state in ("STANDBY", "ARCHIVED"):
            await wish(client, id_, state)
            assert await runtime.containers() == {}
            await wish(client, id_, "RUNNING")
            await answers()
            assert (await runtime.exec(id_, ["cat", "note"])).output == b"mine\n"


@pytest.mark.parametrize("template", ["terminal", "jupyterlab"])
async def test_a_workspace_runs_sleeps_wakes_is_archived_restored_and_leaves_nothing(
    served: tuple[Platform, DockerRuntime], template: str
) -> None:
    platform, runtime = served
    async with asyncio.timeout(SECONDS), platform.client() as client:
        id_ = await make(client, template)
        await until_phase(client, id_, "RUNNING")
        shown = await typed(platform, template, id_, "echo mine > note; id -u; codehub hold 1h --reason typed")
        assert "Stays awake until" in shown
        assert (await workspace(client, id_))["keep_awake_reason"] == "typed"
        async with client.get(f"/api/v1/workspaces/{id_}/logs") as answer:
            assert answer.status == 200
            assert template == "terminal" or "Jupyter" in await answer.text()
        if template == "jupyterlab":
            async with client.get(f"/api/v1/workspaces/{id_}/logs/follow") as answer:
                assert b"Jupyter" in await answer.content.readuntil(b"Jupyter")
        await wish(client, id_, "STANDBY")
        assert await runtime.containers() == {}
        await wish(client, id_, "RUNNING")
        assert "mine" in await typed(platform, template, id_, "cat note")
        archived = await wish(client, id_, "ARCHIVED")
        assert archived["archive_key"]
        assert await engines.left(runtime) == []
        await wish(client, id_, "RUNNING")
        assert "mine" in await typed(platform, template, id_, "cat note")
        async with client.delete(f"/api/v1/workspaces/{id_}", params={"purge": "true"}) as answer:
            assert answer.status == 202
        while await engines.left(runtime):
            await asyncio.sleep(0.1)


async def test_what_runs_goes_on_without_the_platform_and_is_found_again(
    served: tuple[Platform, DockerRuntime],
) -> None:
    platform, runtime = served
    async with asyncio.timeout(SECONDS):
        async with platform.client() as client:
            id_ = await make(client, "terminal")
            await until_phase(client, id_, "RUNNING")
            await typed(platform, "terminal", id_, "export KEPT=here")
        before = await runtime.container(id_)
        await asyncio.to_thread(platform.kill_tree)
        assert before
        now = await runtime.container(id_)
        assert now == before
        assert now.answers  # IDE and relay do not need us
        await asyncio.to_thread(platform.start)
        async with platform.client() as client:
            await until_phase(client, id_, "RUNNING")
            assert "here" in await typed(platform, "terminal", id_, "echo $KEPT")  # the very same shell
        assert await runtime.container(id_) == before


async def test_a_wrong_image_is_an_error_in_the_engines_own_words(docker_engine: str) -> None:
    with a_place(on_disk=True) as folder:
        templates = folder / "templates"
        templates.mkdir()
        (templates / "wrong.toml").write_text(
            'title = "Wrong"\n[container]\nimage = "no-such-image:1"\ncommand = ["ide", "{socket}"]\n'
        )
        platform = on_docker(docker_engine, folder, CODEHUB_TEMPLATES_DIR=str(templates))
        await asyncio.to_thread(platform.start)
        try:
            async with asyncio.timeout(SECONDS), platform.client() as client:
                id_ = await make(client, "wrong")
                error = (await until_phase(client, id_, "ERROR"))["error_info"]
            assert error["reason"] == "ImageNotFound"
            assert re.search("no such image: no-such-image:1", error["last_error"], re.IGNORECASE)
        finally:
            await asyncio.to_thread(platform.stop)
            await clear(engine_of(folder / "data"))


async def test_the_doctor_looks_at_the_engine_its_images_and_its_network(
    docker_engine: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "away.toml").write_text(
        'title = "Away"\n[container]\nimage = "no-such-image:1"\ncommand = ["ide", "{socket}"]\n'
    )
    own = {"CODEHUB_DATA_DIR": str(tmp_path / "data"), "CODEHUB_TEMPLATES_DIR": str(tmp_path / "templates")}

    def looked(**env: str) -> dict[str, str]:
        chosen = {**own, "CODEHUB_RUNTIME": "docker", **env}
        checks = json.loads(codehub("doctor", "--json", **chosen).stdout)["checks"]
        return {check["name"]: f"{check['level']}: {check['detail']} {check.get('advice')}" for check in checks}

    fine = looked(CODEHUB_DOCKER_SOCKET=docker_engine, CODEHUB_NETWORK="none")
    assert fine["docker engine"].startswith("ok: ")
    assert "away (no-such-image:1)" in fine["images"]
    assert fine["network"].startswith("ok: none")
    dead = looked(CODEHUB_DOCKER_SOCKET=str(tmp_path / "nothing.sock"))
    assert dead["docker engine"].startswith("fail: the Docker engine does not answer")
    assert "apt install docker.io" in dead["docker engine"]
    other = looked(CODEHUB_DOCKER_SOCKET=docker_engine, CODEHUB_PLATFORM_IMAGE="no-such-platform")
    assert "make images" in other["images"]
    assert other["network"].startswith("fail: ")
    assert "CODEHUB_DOCKER_NETWORK" in other["network"]
