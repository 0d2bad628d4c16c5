"""What the chart renders, for a table of values and for both ends of the versions."""

import itertools
import subprocess
from typing import Any

import pytest

from codehub import settings as config
from tests.deploy.helm import CHART, ROOT, Objects, helm, of_kind, render

pytestmark = pytest.mark.cluster
ROLES = ("api", "proxy", "coordinator")
OF_THE_SYSTEM = {"POD_IP", "HOME", "PROMETHEUS_MULTIPROC_DIR"}
VALUES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "a namespace for workspaces": {"workspaces": {"namespace": "labs", "createNamespace": True}},
    "processes": {"workspaces": {"runtime": "process"}},
    "a template, a setting and a token": {
        "templates": {"lab.toml": 'title = "Lab"\n'},
        "settings": {"CODEHUB_MAX_RUNNING_GLOBAL": 500, "CODEHUB_LOG_LEVEL": "debug"},
        "secrets": {"adminToken": {"name": "automation"}, "s3": {"name": ""}},
    },
    "nothing around it": {
        "ingress": {"enabled": False},
        "networkPolicies": {"enabled": False},
        "podDisruptionBudgets": False,
        "migrate": {"enabled": False},
        "topologyKeys": [],
    },
    "everything said": {
        "image": {"tag": "2.0", "pullSecrets": [{"name": "registry"}]},
        "proxy": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "annotations": {"c": "d"}},
        "ingress": {"className": "nginx", "annotations": {"e": "f"}, "tlsSecret": ""},
        "networkPolicies": {"monitoring": [{"namespaceSelector": {}}]},
        "listenAddress": "::",
        "trustedProxies": "10.0.0.0/8,fd00::/8",
    },
}


def pods(objects: Objects) -> dict[str, dict[str, Any]]:
    kept = {**of_kind(objects, "Deployment"), **of_kind(objects, "Job")}
    return {name: found["spec"]["template"]["spec"] for name, found in kept.items()}


def environment(pod: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in pod["containers"][0]["env"]}


def test_helm_finds_nothing_wrong_with_it() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["1.20", "1.34"])
@pytest.mark.parametrize("name", VALUES)
def test_every_pod_is_restricted_and_only_the_coordinator_has_rights(name: str, version: str) -> None:
    objects = render(VALUES[name], version=version)
    for pod_name, pod in pods(objects).items():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert own["readOnlyRootFilesystem"]
            assert own["allowPrivilegeEscalation"] is False
            assert container["resources"]["limits"]["memory"]
        runs = VALUES[name].get("workspaces", {}).get("runtime", "kubernetes") == "kubernetes"
        assert pod["automountServiceAccountToken"] is (runs and pod_name == "codehub-coordinator")
    bindings = of_kind(objects, "RoleBinding").values()
    assert {one["name"] for binding in bindings for one in binding["subjects"]} <= {"codehub-coordinator"}
    assert not of_kind(objects, "ClusterRole")


@pytest.mark.parametrize("name", VALUES)
def test_every_setting_that_it_sets_is_one(name: str) -> None:
    known = {name for name, _, _ in config.describe()} | OF_THE_SYSTEM
    for pod in pods(render(VALUES[name])).values():
        ours = {word for word in environment(pod) if not word.startswith("AWS_")}
        assert {word for word in ours - known if not word.startswith("CODEHUB_KUBERNETES_")} == set()
        assert len(pod["containers"][0]["env"]) == len(environment(pod))  # none twice


def test_three_of_each_with_probes_a_budget_and_time_to_leave() -> None:
    objects = render()
    for role in ROLES:
        found = of_kind(objects, "Deployment")[f"codehub-{role}"]
        pod = found["spec"]["template"]["spec"]
        assert found["spec"]["replicas"] == 3
        assert {one["topologyKey"] for one in pod["topologySpreadConstraints"]} > {"kubernetes.io/hostname"}
        assert {"startupProbe", "livenessProbe", "readinessProbe"} < pod["containers"][0].keys()
        assert pod["terminationGracePeriodSeconds"] > 10 + 30
        assert of_kind(objects, "PodDisruptionBudget")[f"codehub-{role}"]["spec"]["maxUnavailable"] == 1


def test_what_is_secret_stands_in_secrets_and_goes_only_where_it_is_needed() -> None:
    found = pods(render(VALUES["a template, a setting and a token"] | {"secrets": {"s3": {"name": "s3"}}}))
    for name, pod in found.items():
        given = environment(pod)
        assert isinstance(given["CODEHUB_DATABASE_URL"], dict)
        assert ("AWS_SECRET_ACCESS_KEY" in given) is (name == "codehub-coordinator")
    assert "CODEHUB_SECRET_KEY" not in environment(found["codehub-migrate"])


@pytest.mark.parametrize(
    ("version", "group"), [("1.20", "policy/v1beta1"), ("1.21", "policy/v1"), ("1.34", "policy/v1")]
)
def test_budgets_are_of_the_group_that_this_version_has(version: str, group: str) -> None:
    assert {one["apiVersion"] for one in of_kind(render(version=version), "PodDisruptionBudget").values()} == {group}


def test_a_workspace_is_entered_by_its_doors_and_leaves_for_the_internet_alone() -> None:
    policies = of_kind(render(), "NetworkPolicy")
    inside, outside = policies["codehub-workspaces"]["spec"], policies["codehub-workspaces-internet"]["spec"]
    assert [port["port"] for rule in inside["ingress"] for port in rule["ports"]] == [7443, 7444]
    assert inside["egress"] == []
    assert outside["podSelector"]["matchLabels"]["codehub.network"] == "internet"
    four, six = (block["ipBlock"] for block in outside["egress"][1]["to"])
    assert "169.254.0.0/16" in four["except"]
    assert "fc00::/7" in six["except"]
    assert len(four["except"]) + len(six["except"]) == 10


def test_the_ingress_has_the_name_of_the_dashboard_and_all_names_of_workspaces() -> None:
    (ingress,) = of_kind(render({"publicUrl": "https://a.example", "workspaceDomain": "b.example"}), "Ingress").values()
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == ["a.example", "*.b.example"]
    assert ingress["spec"]["tls"][0]["hosts"] == ["a.example", "*.b.example"]


def test_between_roles_only_who_has_to_may_come() -> None:
    policies = of_kind(render(), "NetworkPolicy")
    comes = {
        role: [
            source["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            for rule in policies[f"codehub-{role}"]["spec"]["ingress"]
            for source in rule.get("from", [])
        ]
        for role in ROLES
    }
    assert comes == {"proxy": [], "api": ["proxy"], "coordinator": ["api"]}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"publicUrl": "labs.example.org"}, "publicUrl"),
        ({"proxy": {"replicas": 0}}, "replicas"),
        ({"proxxy": {}}, "proxxy"),
        ({"secrets": {"database": {"name": ""}}}, "name"),
        ({"settings": {"CODEHUB_SECRET_KEY": "in the clear"}}, "CODEHUB_SECRET_KEY"),
        ({"archiveUrl": "/var/archives"}, "archiveUrl"),
        ({"workspaces": {"runtime": "docker"}}, "runtime"),
    ],
)
def test_wrong_values_are_refused_by_name(values: dict[str, Any], told: str) -> None:
    done = helm("template", "codehub", str(CHART), values=values)
    assert done.returncode != 0
    assert told in done.stderr


def test_the_manifests_are_what_the_chart_renders() -> None:
    rendered = subprocess.run([ROOT / "scripts/render-manifests"], check=True, capture_output=True, text=True).stdout
    assert (ROOT / "deploy/manifests/codehub.yaml").read_text() == rendered, "run `make manifests`"


def test_the_chart_is_of_this_version() -> None:
    version = (ROOT / "src/codehub/__init__.py").read_text().partition('__version__ = "')[2].partition('"')[0]
    chart = (CHART / "Chart.yaml").read_text()
    assert f"\nversion: {version}\n" in chart
    assert f'\nappVersion: "{version}"\n' in chart


def test_rendering_is_the_same_every_time() -> None:
    first, *others = itertools.starmap(render, [()] * 3)
    assert all(other == first for other in others)
