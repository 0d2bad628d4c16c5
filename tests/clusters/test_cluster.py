"""The cluster of `make cluster` is one: what the tests of the platform on Kubernetes rely on."""

import json
import subprocess
import urllib.request
from functools import partial

import pytest
from cluster import layout
from cluster.layout import NODES

from tests.clusters.kubectl import Kubectl, pod, until

pytestmark = pytest.mark.cluster

HELLO = "hello from server\n"
SERVE = "mkdir /tmp/www; echo hello from $HOSTNAME > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www"


def claim(name: str) -> dict[str, object]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def service(name: str) -> dict[str, object]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("node", NODES)
def test_a_pod_runs_on_every_node_and_can_be_looked_into(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod("one", "echo it runs; sleep 1000", node))
    kubectl.wait_for_pod("one")
    assert kubectl("logs", "one") == "it runs\n"
    assert kubectl("exec", "one", "--", "id", "-u") == "1000\n"


def test_a_claim_is_bound_and_what_is_in_it_survives_the_pod_and_goes_to_another_node(kubectl: Kubectl) -> None:
    kubectl.apply(claim("home"), pod("first", "echo kept > /home/file; sleep 1000", "node1", "home"))
    kubectl.wait_for_pod("first")
    kubectl("delete", "pod", "first")
    kubectl.apply(pod("second", "cat /home/file; stat -c %g /home; sleep 1000", "node2", "home"))
    kubectl.wait_for_pod("second")
    assert kubectl("logs", "second") == "kept\n1000\n"
    bound = kubectl.get("pvc", "home")
    assert bound
    volume = kubectl.place.volumes / bound["spec"]["volumeName"]
    assert volume.is_dir()
    kubectl("delete", "pod/second", "pvc/home")
    until(lambda: not volume.exists())


def test_pods_reach_each_other_across_nodes_by_address_and_by_name(kubectl: Kubectl) -> None:
    kubectl.apply(pod("server", SERVE, "node1"), service("server"), pod("client", "sleep 1000", "node2"))
    address = kubectl.wait_for_pod("server")
    kubectl.wait_for_pod("client")
    for where in (f"{address}:8080", "server", f"server.{kubectl.namespace}.svc.{layout.DNS_DOMAIN}"):
        command = ["exec", "client", "--", "wget", "-q", "-T", "5", "-O", "-", f"http://{where}/"]
        until(partial(_says_hello, kubectl, command))


def test_this_host_reaches_pods_and_services(kubectl: Kubectl) -> None:
    kubectl.apply(pod("server", SERVE, "node3"), service("server"))
    address = kubectl.wait_for_pod("server")
    known = kubectl.get("service", "server")
    assert known
    for where in (f"{address}:8080", known["spec"]["clusterIP"]):
        until(partial(_answers, f"http://{where}/"))


def _says_hello(kubectl: Kubectl, command: list[str]) -> bool:
    return kubectl.try_(*command).stdout == HELLO


def _answers(url: str) -> bool:
    return _fetched(url) == HELLO


def _fetched(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (an address of ours)
            return str(answer.read().decode())
    except OSError:
        return ""


def test_a_pod_that_the_namespace_does_not_allow_is_refused(kubectl: Kubectl) -> None:
    hostile = pod("hostile", "sleep 1000", hostNetwork=True)
    refused = kubectl.try_("apply", "-f", "-", given=json.dumps(hostile))
    assert refused.returncode
    assert 'violates PodSecurity "restricted' in refused.stderr


def test_an_account_may_do_only_what_a_role_gives_it(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "reader")
    token = kubectl("create", "token", "reader").strip()
    server = ["--server", kubectl.place.server, "--certificate-authority", str(kubectl.place.pki / "ca.crt")]
    # Without the admin's certificate, which would come before the token.
    as_reader = ["--kubeconfig=/dev/null", *server, f"--token={token}", "get", "pods"]
    refused = kubectl.try_(*as_reader)
    assert "Forbidden" in refused.stderr
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={kubectl.namespace}:reader")
    until(lambda: kubectl.try_(*as_reader).returncode == 0)
    assert "Forbidden" in kubectl.try_(*as_reader[:-1], "secrets").stderr


def test_a_pod_with_too_much_memory_is_killed(kubectl: Kubectl) -> None:
    greedy = pod("greedy", "x=1; while true; do x=$x$x; done", restartPolicy="Never")
    greedy["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    kubectl.apply(greedy)
    until(lambda: kubectl.phase("greedy") == "Failed")
    seen = kubectl.get("pod", "greedy")
    assert seen
    assert seen["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_nothing_of_it_is_in_this_hosts_network_but_one_interface_and_one_route(place: layout.Place) -> None:
    routes = subprocess.run(["ip", "-4", "route"], check=True, capture_output=True, text=True).stdout
    ours = [line for line in routes.splitlines() if place.interface in line and "kernel" not in line]
    assert len(ours) == 1
    assert ours[0].startswith(place.all_addresses)
