import uuid
from collections.abc import Iterator

import pytest
from cluster import layout, lifecycle

from tests.clusters.kubectl import Kubectl


@pytest.fixture(scope="session")
def place() -> layout.Place:
    """The cluster that the environment names; started if it does not run, and left running."""
    chosen = layout.place()
    lifecycle.up(chosen)
    return chosen


@pytest.fixture
def kubectl(place: layout.Place) -> Iterator[Kubectl]:
    """In a namespace of the test's own, which ends with it."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    anywhere = Kubectl(place)
    anywhere("create", "namespace", namespace)
    anywhere("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    inside = Kubectl(place, namespace)
    inside("wait", "--for=create", "serviceaccount/default", "--timeout=300s")
    yield inside
    anywhere("delete", "namespace", namespace, "--wait=false")
