"""What the Kubernetes runtime decides without a cluster."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from codehub.clock import SystemClock
from codehub.runtimes.base import Exit, ImageNotFoundError, IsolationUnavailableError, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.homes import PARKED, VOLUME, Entry, Home
from codehub.runtimes.kubernetes import bodies, judging, names, volumes, watch
from codehub.runtimes.kubernetes.api import Access, Api, ApiError
from codehub.runtimes.kubernetes.asking import Asking
from codehub.runtimes.kubernetes.bodies import Start
from codehub.runtimes.kubernetes.lifecycle import Lifecycle
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.kubernetes.watch import Table
from codehub.runtimes.limits import Limits
from codehub.system.doors import Doors
from codehub.templates.model import ContainerSpec, Network, Template

HOME = Home("codehub.main.w1.abc", "g1", 4711)
CONFIG = RuntimeConfig(runtime="kubernetes", network="none")
START = Start(HOME, 4711, "door", Limits(memory_mb=512, processes=100, cpus=1.5))
SPEC = ContainerSpec("image", ("ide", "--port={port}", "$(HOME)"), port=9000, env={"BASE": "{base_path}"})


def workload(spec: ContainerSpec | None = SPEC, **environment: str) -> Workload:
    return Workload("w1", "mina", Template("t", "T", ready="/api", container=spec), environment)


def pod(config: RuntimeConfig = CONFIG, spec: ContainerSpec = SPEC, **environment: str) -> dict[str, Any]:
    return bodies.pod(workload(spec, **environment), START, config, Names("main"))


# --- bodies


def containers(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in [*body["spec"].get("initContainers", []), *body["spec"]["containers"]]}


def test_every_container_is_restricted_and_has_no_token() -> None:
    for body in (pod(), bodies.job_pod(HOME, "w1", "door", CONFIG, Names("main"))):
        spec = body["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for one in containers(body).values():
            walls = one["securityContext"]
            assert (walls["allowPrivilegeEscalation"], walls["readOnlyRootFilesystem"]) == (False, True)
            assert walls["capabilities"] == {"drop": ["ALL"]}
            assert one["resources"]["limits"]["memory"]
            assert "valueFrom" not in json.dumps(one)


def test_the_key_of_a_start_is_in_the_relay_alone_and_its_home_in_no_other_pods() -> None:
    body = pod()
    assert [volume["secret"]["secretName"] for volume in body["spec"]["volumes"] if "secret" in volume] == [
        "codehub.main.w1"
    ]
    having = [name for name, one in containers(body).items() if "door" in {m["name"] for m in one["volumeMounts"]}]
    assert having == [names.RELAY]
    claims = [v["persistentVolumeClaim"]["claimName"] for v in body["spec"]["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [HOME.name]


def test_an_ide_is_told_what_the_template_says_and_nothing_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEHUB_SECRET_KEY", "the-platforms-own-secret")
    body = pod(GIVEN="x")
    ide = containers(body)[names.IDE]
    assert ide["command"][-3:] == ["ide", "--port=9000", "$$(HOME)"]  # which the cluster would put in
    environment = {one["name"]: one["value"] for one in ide["env"]}
    assert environment.items() >= {"BASE": "/w/w1/", "GIVEN": "x", "HOME": "/home/mina", "USER": "mina"}.items()
    assert "PATH" not in environment  # the image's
    assert "the-platforms-own-secret" not in json.dumps(body)
    assert '"target": "tcp:9000"' in containers(body)[names.RELAY]["command"][-1]


def test_a_listening_ide_is_on_a_socket_or_on_loopback_never_on_the_pods_address() -> None:
    assert all("ports" not in one for one in containers(pod()).values())
    by_socket = pod(spec=ContainerSpec("image", ("ide", "{socket}")))
    assert '"target": "unix:/run/ide/sock"' in containers(by_socket)[names.RELAY]["command"][-1]


def test_what_cannot_be_had_is_refused() -> None:
    for spec in (None, ContainerSpec("image")):
        with pytest.raises(ImageNotFoundError):
            bodies.spec_of(workload(spec))
    for network in (Network.HOST, Network.ALLOWLIST):
        with pytest.raises(IsolationUnavailableError):
            bodies.network_of(workload(replace(SPEC, network=network)), CONFIG)


def test_settings_choose_class_and_user_namespace_and_without_them_neither_is_said() -> None:
    assert not {"runtimeClassName", "hostUsers", "imagePullSecrets"} & set(pod()["spec"])
    chosen = replace(CONFIG, kubernetes_runtime_class="gvisor", kubernetes_user_namespaces="yes")
    assert (pod(chosen)["spec"]["runtimeClassName"], pod(chosen)["spec"]["hostUsers"]) == ("gvisor", False)


def test_without_limits_none_is_set() -> None:
    body = bodies.pod(workload(), replace(START, allowed=Limits()), CONFIG, Names("main"))
    assert set(containers(body)[names.IDE]["resources"]["limits"]) == {"ephemeral-storage"}


# --- judging


def seen(phase: str = "Running", ide: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    statuses = [{"name": "ide", "image": "image", "state": ide}] if ide else []
    return {
        "metadata": {"labels": {names.ROLE: names.IDE}, "name": "p", "uid": "u", **more.pop("metadata", {})},
        "spec": {"nodeName": "node1"},
        "status": {"phase": phase, "containerStatuses": statuses, **more},
    }


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, judging.Begun("its pod was removed while it started", final=True)),
        (seen("Pending"), None),
        (seen("Pending", {"waiting": {"reason": "ContainerCreating"}}), None),
        (seen(ide=RUNNING), None),  # without an address yet
        (seen(ide=RUNNING, podIP="10.0.0.1"), judging.Begun()),
        (seen(ide={"terminated": {"exitCode": 0}}), judging.Begun()),
        (
            seen("Pending", {"waiting": {"reason": "ErrImagePull", "message": "no such"}}),
            judging.Begun("no such (image image)", image=True),
        ),
        (
            seen("Pending", {"waiting": {"reason": "InvalidImageName", "message": "odd"}}),
            judging.Begun("odd (image image)", image=True, final=True),
        ),
        (seen("Pending", conditions=UNSCHEDULED), judging.Begun("Unschedulable: 0/3 nodes")),
    ],
)
def test_what_became_of_a_start(found: dict[str, Any] | None, expected: judging.Begun | None) -> None:
    assert judging.begun(found) == expected


def test_how_it_ended_is_what_its_first_process_wrote_else_what_the_cluster_saw() -> None:
    at = "2026-01-01T00:00:00Z"
    ended = judging.exit_of(seen(ide={"terminated": {"exitCode": 0, "message": "137\nlast\nwords", "finishedAt": at}}))
    assert ended
    assert (ended.code, ended.log_tail, ended.at and ended.at.year) == (137, "last\nwords", 2026)
    killed = judging.exit_of(seen(ide={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}))
    assert killed == Exit(137, "[codehub] OOMKilled", None)
    evicted = judging.exit_of(seen("Failed", reason="Evicted", message="low on disk"))
    assert evicted == Exit(None, "Evicted: low on disk")
    assert judging.exit_of(seen(ide=RUNNING)) is None


@pytest.mark.parametrize("said", ["\u00b2", "9" * 4096, "99999999999\n", "-1", "1_0"])
def test_what_an_ide_writes_in_the_place_of_its_exit_code_is_no_number(said: str) -> None:
    ended = judging.exit_of(seen(ide={"terminated": {"exitCode": 137, "message": said}}))
    assert ended
    assert ended.code == 137


def test_one_that_the_cluster_cannot_reach_still_runs_and_it_is_said_what_is_awaited() -> None:
    lost = seen(ide=RUNNING, podIP="10.0.0.1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert judging.runs(lost)
    assert judging.is_leaving(lost)
    assert "on node1 has ended" in judging.what_is_awaited(lost)


# --- homes


def claim(home: Home) -> dict[str, Any]:
    return {
        "metadata": {"name": home.name, "annotations": {names.GENERATION: home.generation, names.UID: str(home.uid)}}
    }


def entry(**kinds: object) -> dict[str, Any]:
    return {"metadata": {"name": "e"}, "data": {kind: json.dumps(value) for kind, value in kinds.items()}}


def test_an_entry_says_which_home_a_workspace_has() -> None:
    other = Home("other", "g0", 1)
    said = {"generation": "g2", "home": HOME.name, "restored_from": "key"}
    found = volumes.sort([claim(HOME), claim(other)], entry(volume=said))
    assert found.entries == {VOLUME: Entry("g2", HOME, "key")}
    assert found.unclaimed == [other]
    assert volumes.sort([], entry(volume=said)).dead == [VOLUME]


@pytest.mark.parametrize("said", [7, "text", [], {}, {"generation": ""}, {"generation": 1, "home": "h"}, None])
def test_what_an_entry_says_may_be_unreadable_and_then_no_home_is_anybodys(said: object) -> None:
    found = volumes.sort([claim(HOME)], entry(parked=said))
    assert list(found.unreadable) == [PARKED]
    assert found.unclaimed == []


# --- watching


@pytest.fixture
def table() -> Table:
    return Table(Api(Access("http://127.0.0.1:1", "n", None), SystemClock()), "pods", "", SystemClock())


def thing(name: str, version: int, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": {names.WORKSPACE: "w1"}}}


def event(kind: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": found}


def test_what_we_wrote_is_known_at_once_and_an_older_event_changes_nothing(table: Table) -> None:
    table.saw(thing("a", 5))
    table.take(event("ADDED", thing("a", 4)))
    assert table.get("a") is not None
    assert table._objects["a"]["metadata"]["resourceVersion"] == "5"
    table.take(event("DELETED", thing("a", 6)))
    assert (table.get("a"), table.of("w1"), list(table.workspaces())) == (None, [], [])


async def test_what_we_deleted_does_not_come_back_by_an_older_event(table: Table) -> None:
    table._task = asyncio.create_task(asyncio.sleep(0))  # as if it watched
    table.saw(thing("a", 5))
    table.gone("a", "uid-a")
    table.take(event("MODIFIED", thing("a", 6)))
    assert table.get("a") is None
    table.take(event("ADDED", thing("a", 7, uid="another")))
    assert table.of("w1")


def test_a_new_list_forgets_what_is_gone_and_keeps_what_was_written_since(table: Table) -> None:
    table.saw(thing("old", 3))
    table.saw(thing("new", 9))
    table.replace([thing("there", 4)], "7")
    assert {one["metadata"]["name"] for one in table.all()} == {"new", "there"}


def test_a_place_that_the_cluster_has_forgotten_is_an_error_and_forgets_nothing(table: Table) -> None:
    table.saw(thing("a", 5))
    with pytest.raises(ApiError) as told:
        table.take(event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}))
    assert told.value.answer == 410
    assert table.get("a") is not None


async def test_a_wait_ends_with_the_change_it_waits_for(table: Table) -> None:
    waiting = asyncio.create_task(table.until("a", lambda one: one and one["metadata"]["uid"], 60))
    await asyncio.sleep(0)
    table.saw(thing("b", 1))
    table.saw(thing("a", 2))
    assert await waiting == "uid-a"
    assert await table.until("a", lambda one: one and one["metadata"].get("deletionTimestamp"), 0.01) is None


def test_of_a_pod_that_is_kept_all_that_is_judged_by_is_there_and_nothing_else() -> None:
    said = {"name": names.IDE, "image": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    status = {
        "phase": "Pending",
        "hostIP": "10.0.0.9",
        "containerStatuses": [{**said, "imageID": "sha256:1", "volumeMounts": [{"name": "home"}]}],
        "conditions": [{**refused, "lastTransitionTime": "2026-01-01T00:00:00Z"}, {"type": "Ready", "status": "True"}],
    }
    metadata = {**thing("w1", 5)["metadata"], "managedFields": [{"manager": "kubelet"}]}
    whole = {"metadata": metadata, "spec": {"nodeName": "n", "containers": [{"name": names.IDE}]}, "status": status}
    kept = watch.pruned(whole)
    assert kept["status"] == {"phase": "Pending", "containerStatuses": [said], "conditions": [refused]}
    assert kept["metadata"] == thing("w1", 5)["metadata"]
    assert kept["spec"] == {"nodeName": "n"}
    assert judging.begun({**kept, "metadata": {**metadata, "labels": {names.ROLE: names.IDE}}}) == judging.begun(
        {**whole, "metadata": {**metadata, "labels": {names.ROLE: names.IDE}}}
    )


# --- what runs


def running_pod(name: str, version: int, **state: object) -> dict[str, Any]:
    labels = {names.WORKSPACE: name, names.ROLE: names.IDE}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), "labels": labels}
    metadata |= {"annotations": {names.DOOR: "door"}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    ide = {"name": names.IDE, "state": state or {"running": {}}}
    return {"metadata": metadata, "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [ide]}}


@pytest.fixture
def lifecycle(monkeypatch: pytest.MonkeyPatch) -> Lifecycle:
    """One whose watch is the test."""
    clock = SystemClock()
    made = Lifecycle(
        Api(Access("http://127.0.0.1:1", "n", None), clock), Names("main"), CONFIG, Asking(Doors(""), clock), clock
    )

    async def ready() -> None: ...

    monkeypatch.setattr(made.pods, "ready", ready)
    return made


async def test_what_runs_is_kept_with_each_change_and_an_end_is_told(lifecycle: Lifecycle) -> None:
    ended: list[str] = []
    lifecycle.ended = lambda: ended.append("told")
    lifecycle.pods.take(event("ADDED", running_pod("w1", 1, waiting={})))
    assert await lifecycle.all() == {}
    for name, version in (("w1", 2), ("w2", 3), ("w3", 4)):
        lifecycle.pods.take(event("MODIFIED", running_pod(name, version)))
    assert sorted(await lifecycle.all()) == ["w1", "w2", "w3"]
    assert ended == []
    lifecycle.pods.take(event("MODIFIED", running_pod("w1", 5, terminated={"exitCode": 0})))
    assert (sorted(await lifecycle.all()), len(ended)) == (["w2", "w3"], 1)
    lifecycle.pods.take(event("DELETED", running_pod("w1", 6, terminated={"exitCode": 0})))
    assert len(ended) == 1  # it had ended before
    lifecycle.pods.take(event("DELETED", running_pod("w2", 7)))
    assert (sorted(await lifecycle.all()), len(ended)) == (["w3"], 2)
    lifecycle.pods.replace([], "9")  # listed anew: what ended meanwhile is told as well
    assert (await lifecycle.all(), len(ended)) == ({}, 3)


async def test_one_that_cannot_be_read_runs_nevertheless_until_it_can_be_or_ends(lifecycle: Lifecycle) -> None:
    broken = running_pod("w1", 1)
    del broken["metadata"]["annotations"][names.DOOR]
    lifecycle.pods.take(event("ADDED", broken))
    assert list((await lifecycle.all()).unreadable) == ["w1"]
    lifecycle.pods.take(event("MODIFIED", running_pod("w1", 2)))
    assert (list(await lifecycle.all()), (await lifecycle.all()).unreadable) == (["w1"], {})
    (await lifecycle.all()).clear()  # whose it is
    assert list(await lifecycle.all()) == ["w1"]


# --- looking again


class Told:
    """An API of which is known what it was asked, with what is there."""

    def __init__(self, **there: dict[str, Any]) -> None:
        self.there = there
        self.asked: list[str] = []

    async def call(self, method: str, where: str, *_body: object, missing: bool = False, **parameters: str) -> Any:
        assert (method, missing, parameters) == ("GET", True, {})
        self.asked.append(where)
        return self.there.get(where.rpartition("/")[2].replace(".", "_"))


async def test_one_workspaces_homes_are_looked_at_by_name_and_never_by_looking_through_everybodys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = {names.WORKSPACE: "w1"}
    about = {names.GENERATION: "g1", names.UID: "4711"}

    def made(name: str, uid: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": uid, "resourceVersion": "5", "labels": labels, **more}}

    said = volumes._text(Entry("g1", Home("home.new", "g1", 4711)))
    api = Told(codehub_main_w1={**made("codehub.main.w1", "e"), "data": {VOLUME: said}})
    api.there["home_new"] = made("home.new", "h", annotations=about)
    looked = volumes.Volumes(api, Names("main"), CONFIG, SystemClock())  # type: ignore[arg-type]

    async def ready() -> None: ...

    for table in (looked.claims, looked.entries):
        monkeypatch.setattr(table, "ready", ready)
    looked.claims.saw(made("home.old", "o", annotations=about))  # of which the watch has not told yet that it is gone
    await looked.refresh("w1")
    assert api.asked[0] == "configmaps/codehub.main.w1"
    assert sorted(api.asked[1:]) == ["persistentvolumeclaims/home.new", "persistentvolumeclaims/home.old"]
    seen = await looked.of("w1")
    assert (seen.volume, seen.unclaimed) == (Entry("g1", Home("home.new", "g1", 4711)), [])


# --- doors


def test_a_door_has_the_same_pair_for_all_who_have_the_key_and_none_for_others() -> None:
    ours, rotated = Doors("a first key of ours"), Doors("a second key of ours, a first key of ours")
    name = ours.new()
    assert ours.pair(name) == rotated.pair(name)
    assert ours.pair(name) != ours.pair(ours.new())
    assert rotated.new().partition("-")[0] != name.partition("-")[0]
    with pytest.raises(OSError, match="none of ours"):
        Doors("the key of others").pair(name)
