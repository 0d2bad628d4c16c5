"""Inside × reach, for containers: run by `test_docker_network` on a machine with a small internet around it.

Its engine is another than that of the other tests, with the bridge and the firewall rules that an engine has where
nobody turns them off.
"""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.runtimes.base import IsolationUnavailableError
from codehub.runtimes.docker import networks
from codehub.runtimes.docker.runtime import DockerRuntime
from codehub.runtimes.shepherd import own_addresses
from tests import docker_engine
from tests.contracts.harness import running
from tests.contracts.workloads import SERVER, python, server, workload
from tests.runtimes import reach_cases as reach
from tests.runtimes import small_internet as net

ROOT = pathlib.Path(__file__).parents[2]
NETWORK = "workspaces"
EVERYWHERE = [*reach.INWARD, *reach.LAN, *reach.OUTSIDE, *reach.BY_NAME, *reach.DATAGRAMS]


@pytest.fixture(scope="module", autouse=True)
def bridged() -> Iterator[None]:
    with docker_engine.engine(docker_engine.cache() / "bridged") as socket:
        docker_engine.docker(socket, "load", "-i", os.environ[docker_engine.SAVED])
        os.environ[docker_engine.SOCKET] = socket
        make_network(socket)
        yield


def make_network(socket: str) -> None:
    """As docs/docker.md says."""
    environment = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}
    subprocess.run([ROOT / "scripts" / "docker-network"], env=environment, check=True)


@contextlib.asynccontextmanager
async def alice_and_bob() -> AsyncIterator[tuple[DockerRuntime, list[reach.Target]]]:
    """She tries; he listens, on targets that are told."""
    async with docker_engine.fresh_runtime(network="internet", docker_network=NETWORK) as (runtime, _):
        await running(runtime, workload(python(SERVER, "{socket}"), "alices", "alice"))
        await running(runtime, workload(python(reach.LISTENING, "{socket}"), "bobs", "bob"))
        addresses = own_addresses.parse((await runtime.exec("bobs", ["cat", "/proc/net/fib_trie"])).output.decode())
        hosts = ("127.0.0.1", *addresses)
        yield (
            runtime,
            [
                *(("neighbour", "tcp", host, 5678) for host in hosts),
                *(("neighbour", "udp", host, 5678) for host in hosts),
                ("neighbour's abstract socket", "abstract", "codehub-test-neighbour", 0),
            ],
        )


def test_from_the_machine_itself_everything_is_reached() -> None:
    """Otherwise nothing below would mean anything."""
    reach.test_from_the_machine_itself_everything_is_reached()


async def test_the_internet_is_reached_and_nothing_else() -> None:
    async with alice_and_bob() as (runtime, neighbour):
        with reach.a_busy_machine() as machine:
            found = await reach.reached(runtime, [*machine, *neighbour, *EVERYWHERE])
        assert found == {"public", "services", "public by name", "public datagrams"}
        assert {"neighbour", "neighbour's abstract socket"} <= await reach.reached(runtime, neighbour, "bobs")
        outside = [target for target in neighbour if target[1] != "abstract" and target[2] != "127.0.0.1"]
        assert await reach.reached(runtime, outside, "bobs") == {"neighbour"}  # it listens there, too


async def test_a_start_is_refused_where_a_rule_of_the_firewall_is_gone() -> None:
    """As they all are when the machine has started anew; the engine's network stays."""
    async with docker_engine.fresh_runtime(network="internet", docker_network=NETWORK) as (runtime, _):
        await runtime.create_volume("alices", "g1")
        for rule in networks.firewall("codehub0"):
            subprocess.run(["iptables", "-D", *rule], check=True)
            with pytest.raises(IsolationUnavailableError, match="no firewall around workspaces"):
                await runtime.start(workload(server(), "alices", "alice"))
            make_network(os.environ[docker_engine.SOCKET])
        await running(runtime, workload(server(), "alices", "alice"))


async def test_a_name_server_in_a_private_network_answers_and_nothing_else_there_does() -> None:
    """As in most schools. Made again, the firewall knows it; nothing is open meanwhile, and no rule is there twice."""
    resolv = reach.FOLDER / "resolv.conf"
    before = resolv.read_text()
    resolv.write_text(f"nameserver {net.LAN}\n")
    try:
        make_network(os.environ[docker_engine.SOCKET])
        async with alice_and_bob() as (runtime, neighbour):
            with reach.a_busy_machine() as machine:
                found = await reach.reached(runtime, [*machine, *neighbour, *EVERYWHERE])
        assert found == {"public", "services", "public by name", "public datagrams"}
    finally:
        resolv.write_text(before)
    rules = subprocess.run(["iptables", "-S"], check=True, capture_output=True, text=True).stdout.splitlines()
    ours = [rule for rule in rules if "codehub0" in rule or "CODEHUB" in rule]
    assert len(ours) == len(set(ours))
