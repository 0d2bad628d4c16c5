"""Can workspaces run as pods here? Asks the cluster itself. Loaded only where CODEHUB_RUNTIME=kubernetes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from codehub.clock import SystemClock
from codehub.doctor.model import Finding, fail, ok, warn
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.kubernetes.api import Access, Api
from codehub.settings import Settings
from codehub.templates.loader import Templates

CLUSTER, RIGHTS, TEMPLATES, NETWORK = "cluster", "rights", "pods of templates", "network"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
OLDEST = (1, 20)
# As in deploy/kubernetes/coordinator-role.yaml.
NEEDED = {
    "pods": ("get", "list", "watch", "create", "delete"),
    "persistentvolumeclaims": ("get", "list", "watch", "create", "delete"),
    "configmaps": ("get", "list", "watch", "create", "update", "delete"),
    "secrets": ("create", "delete"),
}
ROLE = "Give it the role in deploy/kubernetes/coordinator-role.yaml."


async def cluster(settings: Settings) -> Finding:
    if not settings.auth.secret_key:
        advice = "Set CODEHUB_SECRET_KEY, the same for every process: relays are entered by it."
        return fail(CLUSTER, "there is no key for the relays of pods", advice)
    try:
        async with _api(settings) as api:
            said = await api.call("GET", "/version")
    except RuntimeFailureError as e:
        return fail(CLUSTER, e.detail, "Set CODEHUB_KUBERNETES_CONFIG, or run in a pod with a service account.")
    version = (int(said["major"]), int("".join(filter(str.isdigit, said["minor"]))))
    detail = f"Kubernetes {said['gitVersion']} on {api.access.url}, namespace {api.namespace}"
    if version < OLDEST:
        return warn(CLUSTER, f"{detail}; older than what was tried", "Use Kubernetes 1.20 or newer.")
    return ok(CLUSTER, detail)


async def rights(settings: Settings) -> Finding:
    """The ones that are needed; the cluster decides as it would decide later."""
    try:
        async with _api(settings) as api:
            asked = [(resource, verb) for resource, verbs in NEEDED.items() for verb in verbs]
            allowed = await asyncio.gather(*(_may(api, *one) for one in asked))
    except RuntimeFailureError as e:
        return fail(RIGHTS, e.detail, "See the cluster above.")
    missing = [f"{verb} {resource}" for (resource, verb), may in zip(asked, allowed, strict=True) if not may]
    if missing:
        return fail(RIGHTS, f"in the namespace {api.namespace} we may not {', '.join(missing)}", ROLE)
    return ok(RIGHTS, f"all that are needed in {api.namespace}")


async def templates(settings: Settings) -> Finding:
    """Which can be started: images are the nodes' business, and cannot be asked for."""
    loaded = Templates.load(settings.runtime.templates_dir, settings.storage.data_dir, settings.runtime.runtime)
    wanted = {one.name: one.container for one in loaded.all() if one.container}
    unfit = [name for name, spec in wanted.items() if not spec.command or spec.user]
    if unfit:
        advice = "On Kubernetes `command` has to be given, and `user` cannot be."
        return warn(TEMPLATES, f"do not start: {', '.join(unfit)}", advice)
    return ok(TEMPLATES, f"{', '.join(wanted)}; whether nodes can pull their images is seen at a start")


async def network(settings: Settings) -> Finding:
    if settings.runtime.network not in {"none", "internet"}:
        return fail(NETWORK, f"pods cannot have {settings.runtime.network}", "Set CODEHUB_NETWORK to none or internet.")
    detail = f"{settings.runtime.network}, by the policies in deploy/kubernetes"
    return ok(NETWORK, f"{detail}; that they are enforced is the cluster's part")


async def _may(api: Api, resource: str, verb: str) -> bool:
    about = {"namespace": api.namespace, "resource": resource, "verb": verb}
    said = await api.call("POST", REVIEW, {"spec": {"resourceAttributes": about}})
    return bool(said["status"]["allowed"])


@asynccontextmanager
async def _api(settings: Settings) -> AsyncIterator[Api]:
    api = Api(Access.of(settings.runtime), SystemClock())
    try:
        yield api
    finally:
        await api.close()
