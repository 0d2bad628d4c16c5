"""The real `codehub serve` with CODEHUB_RUNTIME=kubernetes, by its API and its front door: a workspace's whole life."""

import asyncio
import contextlib
import json
import pathlib
import secrets
from collections.abc import AsyncIterator

import pytest

from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from tests import kubernetes_cluster as cluster
from tests.activity.test_hold_in_terminals import workspace
from tests.places import a_place
from tests.platform import Platform, codehub
from tests.runtimes.test_docker_platform import make, typed, until_phase, wish

pytestmark = [pytest.mark.cluster]
SECONDS = 400


def settings(kubeconfig: str, installation: str) -> dict[str, str]:
    return {
        "CODEHUB_RUNTIME": "kubernetes",
        "CODEHUB_KUBERNETES_CONFIG": kubeconfig,
        "CODEHUB_KUBERNETES_NAMESPACE": cluster.NAMESPACE,
        "CODEHUB_KUBERNETES_INSTALLATION": installation,
        "CODEHUB_KUBERNETES_VOLUME_SIZE": "1Gi",
        "CODEHUB_NETWORK": "none",
        "CODEHUB_SECRET_KEY": cluster.SECRET,
    }


@contextlib.asynccontextmanager
async def serving(kubeconfig: str, **more: str) -> AsyncIterator[tuple[Platform, KubernetesRuntime]]:
    with a_place(on_disk=True) as folder:
        installation = secrets.token_hex(4)
        chosen = {**settings(kubeconfig, installation), **more}
        platform = Platform(folder / "data", first_start=False, **chosen)
        await asyncio.to_thread(platform.start)
        runtime = cluster.open_runtime(folder / "beside", kubernetes_installation=installation)
        try:
            yield platform, runtime
        finally:
            await asyncio.to_thread(platform.stop)
            await cluster.clear(runtime)
            await runtime.close()


async def test_a_workspace_runs_sleeps_wakes_is_archived_restored_and_leaves_nothing(kubernetes: str) -> None:
    async with serving(kubernetes) as (platform, runtime), asyncio.timeout(SECONDS), platform.client() as client:
        id_ = await make(client, "terminal")
        await until_phase(client, id_, "RUNNING")
        await typed(platform, "terminal", id_, "echo mine > note")
        async with client.get(f"/api/v1/workspaces/{id_}/logs") as answer:
            assert answer.status == 200
        before = await runtime.container(id_)
        await asyncio.to_thread(platform.kill_tree)
        await asyncio.to_thread(platform.start)
        async with platform.client() as again:
            await until_phase(again, id_, "RUNNING")
            assert "mine" in await typed(platform, "terminal", id_, "cat note")
            assert await runtime.container(id_) == before  # which has not noticed
            await wish(again, id_, "STANDBY")
            assert await runtime.containers() == {}
            await wish(again, id_, "RUNNING")
            assert (await wish(again, id_, "ARCHIVED"))["archive_key"]
            assert await cluster.left(runtime) == []
            await wish(again, id_, "RUNNING")
            assert "mine" in await typed(platform, "terminal", id_, "cat note")
            async with again.delete(f"/api/v1/workspaces/{id_}", params={"purge": "true"}) as answer:
                assert answer.status == 202
            while await cluster.left(runtime):
                await asyncio.sleep(0.2)


async def test_what_the_cluster_refuses_is_an_error_in_its_own_words(kubernetes: str, tmp_path: pathlib.Path) -> None:
    templates = tmp_path / "templates"
    templates.mkdir()
    tmp_path.chmod(0o755)
    (templates / "wrong.toml").write_text(
        'title = "Wrong"\n[container]\nimage = "codehub-cluster/none:1"\ncommand = ["ide", "{socket}"]\n'
    )
    async with (
        serving(kubernetes, CODEHUB_TEMPLATES_DIR=str(templates)) as (platform, _),
        asyncio.timeout(SECONDS),
        platform.client() as client,
    ):
        id_ = await make(client, "wrong")
        error = (await until_phase(client, id_, "ERROR"))["error_info"]
        assert (error["reason"], "codehub-cluster/none:1" in error["last_error"]) == ("ImageNotFound", True)
        assert (await workspace(client, id_))["phase"] == "ERROR"


async def test_the_doctor_looks_at_the_cluster_and_at_our_rights(kubernetes: str, tmp_path: pathlib.Path) -> None:
    def looked(**env: str) -> dict[str, str]:
        chosen = {"CODEHUB_DATA_DIR": str(tmp_path / "data"), **settings(kubernetes, "doctor"), **env}
        checks = json.loads(codehub("doctor", "--json", **chosen).stdout)["checks"]
        return {check["name"]: f"{check['level']}: {check['detail']} {check.get('advice')}" for check in checks}

    fine = await asyncio.to_thread(looked)
    assert fine["cluster"].startswith("ok: Kubernetes v")
    assert fine["rights"].startswith("ok: ")
    assert fine["network"].startswith("ok: none")
    dead = await asyncio.to_thread(looked, CODEHUB_KUBERNETES_CONFIG=str(tmp_path / "nothing"))
    assert dead["cluster"].startswith("fail: the kubeconfig")
