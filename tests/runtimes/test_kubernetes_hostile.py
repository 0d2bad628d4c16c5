"""From inside a workspace's pod: no cluster, no node and no other pod answers, and it has nothing to show them.

The cluster of `make cluster` does not enforce network policies, so what is found here holds without them.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cluster import layout

from codehub.runtimes.containers.door import ASK_PORT, IDE_PORT
from codehub.runtimes.kubernetes.api import objects
from tests.clusters.kubectl import Kubectl, until
from tests.contracts.harness import KUBERNETES
from tests.runtimes.conftest import Neighbours, next_door

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]
API, KUBELET, KUBELET_OPEN, ETCD = 6443, 10250, 10255, 2379
PROXY_HEALTH, PROXY_METRICS, MANAGER, SCHEDULER, RUNTIME_METRICS = 10256, 10249, 10257, 10259, 1338
# Prints, of each address, what comes of asking for each path: nothing where nobody listens, or nobody lets us in.
ASK = """
import http.client, json, socket, ssl, sys
tls = ssl._create_unverified_context()
for host, port, paths in json.loads(sys.argv[1]):
    for kind in (http.client.HTTPConnection, http.client.HTTPSConnection):
        more = {"context": tls} if kind is http.client.HTTPSConnection else {}
        for method, path in paths:
            try:
                one = kind(host, port, timeout=3, **more)
                one.request(method, path)
                print(json.dumps([host, port, kind.__name__, path, one.getresponse().status]), flush=True)
            except (OSError, http.client.HTTPException):
                continue
"""
CERTIFICATES = """
import os
places = ["/var/run/secrets", "/run/secrets", "/run/door", "/run/containerd"]
places += ["/etc/kubernetes", "/var/lib/kubelet", "/etc/cni"]
print([place for place in places if os.path.exists(place)])
print([name for name in os.environ if "TOKEN" in name or "KEY" in name])
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def neighbours(kubernetes: str) -> AsyncIterator[Neighbours]:
    async with next_door(KUBERNETES) as moved_in:
        yield moved_in


async def answers(neighbours: Neighbours, asked: list[tuple[str, int, list[tuple[str, str]]]]) -> list[tuple[int, int]]:
    """(port, status) of all that answered at all."""
    shown = await neighbours.alice_sees(ASK, json.dumps(asked))
    return [(port, status) for _, port, _, _, status in map(json.loads, shown.splitlines())]


async def test_it_holds_no_token_no_key_and_no_file_of_the_cluster(neighbours: Neighbours) -> None:
    assert await neighbours.alice_sees(CERTIFICATES) == "[]\n[]\n"


async def test_the_clusters_api_gives_a_stranger_nothing(neighbours: Neighbours) -> None:
    place = layout.place()
    tried = [
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/namespaces/codehub-contract/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/namespaces/codehub-contract/pods"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ]
    hosts = [(place.address(layout.CONTROL), API), (place.api_service, 443)]
    seen = await answers(neighbours, [(host, port, tried) for host, port in hosts])
    assert {status for _, status in seen} <= {400, 401, 403}  # 400: it speaks TLS alone
    assert 403 in {status for _, status in seen} or 401 in {status for _, status in seen}, "it was reached"


async def test_no_node_gives_anything(neighbours: Neighbours) -> None:
    place = layout.place()
    pod = neighbours.alice.identity
    tried = [
        ("GET", "/pods"),
        ("GET", "/runningpods/"),
        ("GET", "/metrics"),
        ("GET", "/logs/"),
        ("GET", "/configz"),
        ("POST", f"/run/codehub-contract/{pod}/ide"),
        ("GET", "/exec/codehub-contract/any/ide?command=id"),
    ]
    ports = (KUBELET, KUBELET_OPEN, PROXY_METRICS, RUNTIME_METRICS, 22, 80)
    asked = [(place.address(node), port, tried) for node in layout.NODES for port in ports]
    seen = await answers(neighbours, asked)
    assert {port for port, _ in seen} <= {KUBELET}
    assert {status for _, status in seen} <= {400, 401, 403}


async def test_the_control_plane_is_closed(neighbours: Neighbours) -> None:
    control = layout.place().address(layout.CONTROL)
    tried = [("GET", "/metrics"), ("GET", "/v2/keys"), ("POST", "/v3/kv/range"), ("GET", "/configz")]
    seen = await answers(
        neighbours, [(control, port, tried) for port in (ETCD, 2380, MANAGER, SCHEDULER, PROXY_METRICS)]
    )
    assert seen == []


async def test_metadata_of_a_cloud_is_not_there(neighbours: Neighbours) -> None:
    tried = [("GET", "/latest/meta-data/"), ("GET", "/computeMetadata/v1/")]
    assert await answers(neighbours, [("169.254.169.254", 80, tried)]) == []


async def test_another_workspaces_pod_lets_nobody_in(neighbours: Neighbours) -> None:
    bob = neighbours.bob.address.host
    assert bob
    tried = [("GET", "/"), ("GET", "/healthz")]
    ports = (IDE_PORT, ASK_PORT, 80, 8080, 8888, 22)
    assert await answers(neighbours, [(bob, port, tried) for port in ports]) == []
    with_a_certificate = """
import socket, ssl, sys
tls = ssl._create_unverified_context()
for port in map(int, sys.argv[2:]):
    try:
        with tls.wrap_socket(socket.create_connection((sys.argv[1], port), 3)) as one:
            one.sendall(b'{"do": "logs", "tail_bytes": 100, "follow": false}')
            if one.recv(1): print("answered", port)
    except OSError: pass
"""
    assert await neighbours.alice_sees(with_a_certificate, bob, str(IDE_PORT), str(ASK_PORT)) == ""


async def test_a_pod_of_another_namespace_finds_its_doors_closed_too(neighbours: Neighbours) -> None:
    """And a workspace cannot find what runs in others by name."""
    kubectl = Kubectl(layout.place(), "default")
    get = "timeout 5 wget -q -O - http://$0:$p/ 2>/dev/null && echo in"
    script = f"for p in {IDE_PORT} {ASK_PORT}; do {get}; done; echo done"
    image = layout.BUSYBOX
    run = ["run", "stranger", f"--image={image}", "--image-pull-policy=Never", "--restart=Never", "--"]
    bob = neighbours.bob.address.host
    assert bob
    try:
        await asyncio.to_thread(kubectl, *run, "sh", "-c", script, bob)
        await asyncio.to_thread(until, lambda: kubectl.phase("stranger") == "Succeeded")
        assert await asyncio.to_thread(kubectl, "logs", "stranger") == "done\n"
    finally:
        await asyncio.to_thread(kubectl.try_, "delete", "pod", "stranger", "--ignore-not-found", "--wait=false")


async def test_its_pod_has_no_right_that_the_namespace_would_not_give(neighbours: Neighbours) -> None:
    """The namespace enforces `restricted`, so the pod would not be there otherwise; and its account can do nothing."""
    kubectl = Kubectl(layout.place(), "codehub-contract")
    who = "--as=system:serviceaccount:codehub-contract:default"
    for verb, kind in (
        ("get", "secrets"),
        ("list", "pods"),
        ("create", "pods"),
        ("get", "nodes"),
        ("create", "pods/exec"),
    ):
        assert kubectl.try_("auth", "can-i", verb, kind, who).stdout.strip() == "no"
    runtime = neighbours.runtime
    pod = await runtime.api.call("GET", objects("pods", runtime.names.of("alices")))  # type: ignore[attr-defined]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"].get("hostNetwork") is None
