"""Nodes go and come back, processes are killed: the cluster is a cluster again."""

import json
import pathlib
import signal
import subprocess
from collections.abc import Iterator

import pytest
from cluster import cgroups, layout, lifecycle, machines
from cluster.layout import CONTROL

from codehub.system.processes import Identity
from tests.clusters.kubectl import Kubectl, pod, until

pytestmark = pytest.mark.cluster

LOST = "node3"


@pytest.fixture
def lost(place: layout.Place) -> Iterator[str]:
    yield LOST
    lifecycle.up(place)


def node_is_ready(kubectl: Kubectl, name: str) -> bool:
    seen = kubectl.get("node", name)
    assert seen
    return any(one["type"] == "Ready" and one["status"] == "True" for one in seen["status"]["conditions"])


def processes_with(word: str) -> list[int]:
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_lost_nodes_pod_goes_on_unseen_is_replaced_only_by_force_and_ends_when_the_node_is_back(
    kubectl: Kubectl, lost: str
) -> None:
    mark = f"77{kubectl.namespace.split('-')[1][:4]}" if kubectl.namespace else ""
    kubectl.apply(pod("work", f"echo {mark}; sleep 100000", lost))
    kubectl.wait_for_pod("work")
    lifecycle.lose(kubectl.place, lost, power=False)
    until(lambda: not node_is_ready(kubectl, lost))
    # It is told to go, and stays: nobody knows whether it still runs.
    until(lambda: bool((kubectl.get("pod", "work") or {}).get("metadata", {}).get("deletionTimestamp")))
    assert processes_with(mark)
    assert kubectl.phase("work") == "Running"
    lifecycle.bring_back(kubectl.place, lost)
    until(lambda: kubectl.phase("work") == "gone")
    until(lambda: not processes_with(mark))
    until(lambda: node_is_ready(kubectl, lost))


def test_a_node_without_power_comes_back_and_runs_its_pods_anew(kubectl: Kubectl, lost: str) -> None:
    forever = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]
    kubectl.apply(pod("work", "sleep 100000", lost, tolerations=forever))
    kubectl.wait_for_pod("work")
    lifecycle.lose(kubectl.place, lost, power=True)
    assert machines.identity(kubectl.place, lost) is None
    until(lambda: not node_is_ready(kubectl, lost))
    lifecycle.bring_back(kubectl.place, lost)
    until(lambda: node_is_ready(kubectl, lost))
    until(lambda: _restarts(kubectl, "work") == 1)
    kubectl.wait_for_pod("work")


def _restarts(kubectl: Kubectl, name: str) -> int:
    seen = kubectl.get("pod", name)
    assert seen
    return int(seen["status"]["containerStatuses"][0]["restartCount"])


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
def test_what_is_killed_of_the_control_plane_runs_again_and_pods_do_not_notice(kubectl: Kubectl, program: str) -> None:
    kubectl.apply(pod("before", "sleep 100000"))
    kubectl.wait_for_pod("before")
    killed = _programs_of(kubectl.place, CONTROL, program)
    assert killed
    for one in killed:
        one.signal(signal.SIGKILL)
    until(lambda: not any(one.alive() for one in killed))
    until(lambda: bool(_programs_of(kubectl.place, CONTROL, program)))
    until(lambda: kubectl.try_("get", "--raw=/readyz").returncode == 0)
    until(lambda: kubectl.try_("apply", "-f", "-", given=json.dumps(pod("after", "sleep 100000"))).returncode == 0)
    kubectl.wait_for_pod("after")
    assert _restarts(kubectl, "before") == 0


def _programs_of(place: layout.Place, machine: str, program: str) -> list[Identity]:
    known = [Identity.of(pid) for pid in cgroups.processes(place, machine)]
    return [one for one in known if one and _runs(one.pid, program)]


def _runs(pid: int, program: str) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(f"/{program}".encode())
    except OSError:
        return False


def test_a_machine_that_is_killed_is_started_by_the_next_up(place: layout.Place, kubectl: Kubectl) -> None:
    kubectl.apply(pod("work", "sleep 100000"))
    kubectl.wait_for_pod("work")
    known = machines.identity(place, CONTROL)
    assert known
    known.signal(signal.SIGKILL)
    until(lambda: not known.alive())
    lifecycle.up(place)
    assert machines.identity(place, CONTROL) not in (None, known)
    until(lambda: kubectl.phase("work") == "Running")
    assert _restarts(kubectl, "work") == 0


def test_down_leaves_nothing_behind() -> None:
    """Of a second cluster, which does not disturb the first."""
    other = layout.Place(name="second", network="10.214")
    try:
        lifecycle.up(other)
        kubectl = Kubectl(other, "default")
        kubectl.apply(pod("work", "sleep 100000"))
        kubectl.wait_for_pod("work")
    finally:
        lifecycle.down(other)
    assert not other.folder.exists()
    assert not processes_with(str(other.folder))
    for command in (
        ["ip", "netns"],
        ["ip", "link"],
        ["ip", "route"],
        ["cat", "/proc/self/mountinfo", "/proc/self/cgroup"],
    ):
        seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "second-" not in seen
        assert "10.214." not in seen
    assert not list(pathlib.Path("/sys/fs/cgroup").glob("*/cluster-second"))
