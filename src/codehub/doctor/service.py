"""Runs all checks at once, each within a bound. Called by `cli`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from codehub import settings as config
from codehub.doctor import account, background, isolation, machine, servers, store, workspaces
from codehub.doctor import settings as settings_check
from codehub.doctor.model import Finding, fail
from codehub.doctor.threads import in_thread
from codehub.logs import redact_text

BOUND_SECONDS = 6.0


async def examine(environ: Mapping[str, str]) -> list[Finding]:
    settings, complaints = config.load_checked(environ)
    root = settings.storage.data_dir
    checks: dict[str, Callable[[], Awaitable[Finding]]] = {
        "settings": lambda: in_thread(lambda: settings_check.check(complaints, environ)),
        "python": lambda: in_thread(machine.python),
        "service account": lambda: account.check(settings),
        "data directory": lambda: in_thread(lambda: machine.data_directory(root)),
        "disk space": lambda: in_thread(lambda: machine.disk(root)),
        "port": lambda: machine.port(settings.server, root),
        "database": lambda: servers.database(settings),
        "redis": lambda: servers.redis_server(settings),
        "background work": lambda: background.check(settings),
        "object store": lambda: store.check(settings.storage),
        **OF_RUNTIME[settings.runtime.runtime](settings),
    }
    return list(await asyncio.gather(*(_bounded(name, check) for name, check in checks.items())))


def _of_processes(settings: config.Settings) -> dict[str, Callable[[], Awaitable[Finding]]]:
    return {
        "isolation": lambda: workspaces.isolation(settings),
        "network": lambda: workspaces.network(settings),
        "templates": lambda: in_thread(lambda: workspaces.templates(settings)),
        "bubblewrap": isolation.bubblewrap,
        "user namespaces": isolation.user_namespaces,
        "shares": lambda: in_thread(lambda: workspaces.shares(settings)),
        "system calls": lambda: in_thread(isolation.system_calls),
        "kernel tables": lambda: in_thread(isolation.user_tables),
        "control groups": lambda: in_thread(isolation.control_groups),
    }


def _of_docker(settings: config.Settings) -> dict[str, Callable[[], Awaitable[Finding]]]:
    from codehub.doctor import docker  # noqa: PLC0415 (only where it is chosen)

    return {
        "docker engine": lambda: docker.engine(settings),
        "images": lambda: docker.images(settings),
        "network": lambda: docker.network(settings),
        "templates": lambda: in_thread(lambda: workspaces.templates(settings)),
        "shares": lambda: in_thread(lambda: workspaces.shares(settings)),
    }


def _of_kubernetes(settings: config.Settings) -> dict[str, Callable[[], Awaitable[Finding]]]:
    from codehub.doctor import kubernetes  # noqa: PLC0415 (only where it is chosen)

    return {
        "cluster": lambda: kubernetes.cluster(settings),
        "rights": lambda: kubernetes.rights(settings),
        "network": lambda: kubernetes.network(settings),
        "templates": lambda: in_thread(lambda: workspaces.templates(settings)),
        "pods of templates": lambda: kubernetes.templates(settings),
    }


OF_RUNTIME = {"process": _of_processes, "docker": _of_docker, "kubernetes": _of_kubernetes}


async def _bounded(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    """A check that fails in an unforeseen way is a finding as well; the others go on."""
    try:
        return await asyncio.wait_for(check(), BOUND_SECONDS)
    except TimeoutError:
        return fail(
            name, f"no answer within {BOUND_SECONDS:g} s", "Something it depends on hangs: a disk or a network."
        )
    except Exception as e:  # noqa: BLE001
        detail = redact_text(f"{type(e).__name__}: {e}").splitlines()[0]
        return fail(name, f"could not be checked: {detail}", "Please report this.")
