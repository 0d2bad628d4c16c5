"""What JupyterLab makes of the parts that we give it: the real one, started as the template says, by itself."""

import asyncio
import contextlib
import hashlib
import html
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from codehub.jupyter import identity, server_extension
from codehub.templates import loader, programs
from codehub.templates.expand import expand

EXTENSION = "@codehub/workspace"
SOURCES = pathlib.Path(identity.__file__).parent / "labextension"
START_SECONDS = 90.0
OWN = "/w/lab/static/lab"


@contextlib.asynccontextmanager
async def jupyterlab(
    prepare: Callable[[pathlib.Path], None] = lambda _home: None,
) -> AsyncIterator[aiohttp.ClientSession]:
    """With a new home, in which `prepare` may put a person's configuration."""
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        home, socket = pathlib.Path(folder, "home"), pathlib.Path(folder, "ide.sock")
        home.mkdir()
        prepare(home)
        process = loader.read(loader.BUILTIN / "jupyterlab.toml").process
        assert process is not None
        values = {"socket": str(socket), "port": "0", "home": str(home), "base_path": "/w/lab/", "workspace_id": "lab"}
        command = programs.command([expand(word, values) for word in process.command], pathlib.Path(folder))
        assert command is not None
        root = ["--allow-root"] if os.geteuid() == 0 else []
        env = {"HOME": str(home), "PATH": os.environ["PATH"], **process.env}
        with (home / "log").open("wb") as log:
            server = await asyncio.create_subprocess_exec(*command, *root, cwd=home, env=env, stdout=log, stderr=log)
        try:
            async with aiohttp.ClientSession(
                "http://localhost", connector=aiohttp.UnixConnector(str(socket))
            ) as client:
                await _until_up(client, server, home / "log")
                yield client
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.terminate()
            await server.wait()


async def _until_up(client: aiohttp.ClientSession, server: asyncio.subprocess.Process, log: pathlib.Path) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            assert server.returncode is None, log.read_text()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with client.get("/w/lab/api") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)


async def page_config(client: aiohttp.ClientSession, **headers: str) -> dict[str, Any]:
    async with client.get(
        "/w/lab/lab", headers={name.replace("_", "-"): text for name, text in headers.items()}
    ) as page:
        assert page.status == 200
        text = await page.text()
    (config,) = re.findall(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(html.unescape(config))
    (script,) = re.findall(r'<script defer="defer" src="([^"]*)/main\.', text)
    assert script == found["fullStaticUrl"]
    return found


def offer(of: str = "") -> str:
    folder = identity.platform_folder()
    assert folder is not None
    return f"https://shared-files.labs.example.org/_codehub/jupyterlab/{of or identity.of(folder)}"


async def test_a_page_takes_the_offered_files_when_they_are_its_own_and_has_our_extension() -> None:
    async with jupyterlab() as client:
        plain = await page_config(client)
        assert plain["fullStaticUrl"] == OWN
        assert (await page_config(client, X_Codehub_Jupyterlab=offer()))["fullStaticUrl"] == offer()
        for other in ("4.6.5-0123456789abcdef", "x"):
            assert (await page_config(client, X_Codehub_Jupyterlab=offer(other)))["fullStaticUrl"] == OWN
        assert await page_config(client) == {**plain, "store_id": plain["store_id"] + 4}  # nothing stays behind
        assert plain["buildCheck"] is False
        assert plain["news"] == {"disabled": True}
        ours = [one for one in plain["federated_extensions"] if one["name"] == EXTENSION]
        assert [one["load"].startswith("static/remoteEntry.") for one in ours] == [True]
        async with client.get(f"/w/lab/lab/extensions/{EXTENSION}/{ours[0]['load']}") as script:
            assert script.status == 200
            assert await script.text() == (SOURCES / ours[0]["load"]).read_text(encoding="utf-8")


async def test_a_persons_own_configuration_wins() -> None:
    def prepare(home: pathlib.Path) -> None:
        labconfig = home / ".config" / "jupyter" / "labconfig"
        labconfig.mkdir(parents=True)
        mine = {"disabledExtensions": {EXTENSION: True}, "buildCheck": True}
        (labconfig / "page_config.json").write_text(json.dumps(mine))
        off = {"ServerApp": {"jpserver_extensions": {"codehub.jupyter.server_extension": False}}}
        (home / ".config" / "jupyter" / "jupyter_server_config.json").write_text(json.dumps(off))
        extension = home / ".local" / "share" / "jupyter" / "labextensions" / "mine"
        extension.mkdir(parents=True)
        package = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
        (extension / "package.json").write_text(json.dumps({**package, "name": "mine"}))

    async with jupyterlab(prepare) as client:
        config = await page_config(client, X_Codehub_Jupyterlab=offer())
        assert config["fullStaticUrl"] == OWN
        assert config["buildCheck"] is True
        assert EXTENSION in config["disabledExtensions"]
        assert {"mine", EXTENSION} <= {one["name"] for one in config["federated_extensions"]}


async def test_a_jupyterlab_with_other_static_files_serves_its_own() -> None:
    """As one that a person has built, or configured to be somewhere else."""

    def built(home: pathlib.Path) -> None:
        folder = identity.platform_folder()
        assert folder is not None
        shutil.copytree(folder.parent, home / "app")
        with (home / "app" / "static" / "index.html").open("a") as page:
            page.write("<!-- mine -->")
        _configure(home, {"LabApp": {"app_dir": str(home / "app")}})

    async with jupyterlab(built) as client:
        assert (await page_config(client, X_Codehub_Jupyterlab=offer()))["fullStaticUrl"] == OWN


async def test_a_place_for_static_files_that_a_person_configured_is_kept() -> None:
    elsewhere = {"LabApp": {"override_static_url": "https://example.org/lab/"}}
    async with jupyterlab(lambda home: _configure(home, elsewhere)) as client:
        found = (await page_config(client, X_Codehub_Jupyterlab=offer()))["fullStaticUrl"]
        assert found == "https://example.org/lab"


def _configure(home: pathlib.Path, values: dict[str, Any]) -> None:
    folder = home / ".config" / "jupyter"
    folder.mkdir(parents=True)
    (folder / "jupyter_server_config.json").write_text(json.dumps(values))


def test_language_servers_are_looked_for_where_npm_would_put_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.write_text("#!/bin/sh\n")
    node.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(node.parent))
    monkeypatch.delenv("NPM_CONFIG_PREFIX", raising=False)
    (tmp_path / ".npmrc").write_text('; mine\nprefix = "${HOME}/packages"\n')
    roots = server_extension.node_roots()
    assert {tmp_path / "packages" / "lib", tmp_path / "node" / "lib", pathlib.Path("/usr/local/lib")} <= set(roots)
    assert {pathlib.Path.cwd(), pathlib.Path(sys.prefix)} <= set(roots)
    monkeypatch.setenv("NPM_CONFIG_PREFIX", "/opt/npm")
    assert pathlib.Path("/opt/npm/lib") in server_extension.node_roots()
    (tmp_path / ".npmrc").write_bytes(b"\xff\xfe")
    assert server_extension.node_roots()


def test_the_name_of_the_extensions_script_says_what_is_in_it() -> None:
    """Browsers keep it for good: after a change, put the first eight digits of its SHA-256 into its name."""
    load = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))["jupyterlab"]["_build"]["load"]
    digest = hashlib.sha256((SOURCES / load).read_bytes()).hexdigest()[:8]
    assert load == f"static/remoteEntry.{digest}.js"
    assert [path.name for path in (SOURCES / "static").iterdir()] == [pathlib.Path(load).name]
