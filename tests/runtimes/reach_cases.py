"""Inside × reach: run by `test_network` on a machine with a small internet around it, as root and as an ordinary user.

Everything here is really there and reachable from the machine itself; what is closed is closed by the wall.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_network

import pytest

from codehub.runtimes.base import Runtime
from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.shepherd import own_addresses
from codehub.templates.model import Network, ProcessSpec, Template
from tests.contracts.harness import KINDS, fresh_runtime, running, until
from tests.contracts.workloads import SERVER, workload
from tests.runtimes import small_internet as net

FOLDER = pathlib.Path(os.environ[net.ENVIRONMENT])
AS_ROOT = os.geteuid() == 0
WAYS = [
    "relay",
    *(["slirp4netns"] if shutil.which("slirp4netns") and shutil.which("nft") else []),
    *(["pasta"] if shutil.which("pasta") and shutil.which("nft") and not AS_ROOT else []),  # older ones refuse root
    *(["veth"] if shutil.which("nft") and AS_ROOT else []),
]
# Tries every target in every way there is, all at once, and prints those that answered.
TRY = """
import json, os, socket, sys, threading, urllib.parse
targets = json.loads(sys.argv[1])
proxy = urllib.parse.urlsplit(os.environ.get("http_proxy", ""))
devices = [name for _, name in socket.if_nameindex() if name != "lo"]
open_ = []
def connect(host, port, device=None):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(4)
        if device: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        s.connect((host, port))
        return True
def asked(host, port, form):
    with socket.create_connection((proxy.hostname, proxy.port), 10) as s:
        s.settimeout(20)
        literal = f"[{host}]" if ":" in host else host
        if form == "CONNECT": s.sendall(f"CONNECT {literal}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        else: s.sendall(f"GET http://{literal}:{port}/hello HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
        answer = s.recv(100)
        return answer.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200", b"HTTP/1.0 404"))
def udp(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect((host, port))
        s.send(b"ping")
        return s.recv(100) == b"ping"
def abstract(name, _):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0" + name)
        return True
def attempt(label, work, *arguments):
    try:
        if work(*arguments): open_.append(label)
    except (OSError, ValueError, TypeError): pass
threads = []
def begin(*arguments): threads.append(threading.Thread(target=attempt, args=arguments)); threads[-1].start()
for label, kind, host, port in targets:
    if kind == "tcp":
        begin(label, connect, host, port)
        for device in devices: begin(label, connect, host, port, device)
        if proxy.hostname:
            for form in ("CONNECT", "GET"): begin(label, asked, host, port, form)
    else: begin(label, {"udp": udp, "abstract": abstract}[kind], host, port)
for thread in threads: thread.join()
print(json.dumps(sorted(set(open_))))
"""
# Another workspace with a kernel and a debugger, as it were: listeners on every address it has.
LISTENING = (
    """
import socket, threading
def echo(s):
    while True:
        data, where = s.recvfrom(100)
        s.sendto(data, where)
listeners = [socket.create_server(("0.0.0.0", 5678)), socket.create_server(("::", 5679), family=socket.AF_INET6)]
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("0.0.0.0", 5678))
threading.Thread(target=echo, args=(datagrams,), daemon=True).start()
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\\0codehub-test-neighbour")
hidden.listen()
"""
    + SERVER
)
Target = tuple[str, str, str, int]


def _on_one_port(stack: contextlib.ExitStack) -> tuple[int, socket.socket]:
    """For both families and for datagrams; one that is free for a listener alone is not enough."""
    while True:
        with contextlib.ExitStack() as tried, contextlib.suppress(OSError):
            four = tried.enter_context(socket.create_server(("0.0.0.0", 0)))
            port = four.getsockname()[1]
            tried.enter_context(socket.create_server(("::", port), family=socket.AF_INET6))
            datagrams = tried.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            datagrams.bind(("0.0.0.0", port))
            stack.enter_context(tried.pop_all())
            return port, datagrams


@contextlib.contextmanager
def a_busy_machine() -> Iterator[list[Target]]:
    """Services on every address of the machine, and what is to be reached of them: nothing."""
    with contextlib.ExitStack() as stack:
        port, datagrams = _on_one_port(stack)
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind("\0codehub-test-machine")
        hidden.listen()

        def echo() -> None:
            with contextlib.suppress(OSError):
                while True:
                    data, where = datagrams.recvfrom(100)
                    datagrams.sendto(data, where)

        threading.Thread(target=echo, daemon=True).start()
        addresses = ("127.0.0.1", "127.0.0.2", "::1", net.MACHINE, net.MACHINE_LAN, net.MACHINE_SECOND, net.MACHINE_ANY)
        yield [
            *(("machine", "tcp", address, port) for address in addresses),
            *(("machine", "udp", address, port) for address in ("127.0.0.1", net.MACHINE, net.MACHINE_LAN)),
            ("machine by name", "tcp", "machine.inward.test", port),
            ("machine by name", "tcp", "loopback.inward.test", port),
            ("machine's abstract socket", "abstract", "codehub-test-machine", 0),
        ]


INWARD: list[Target] = [
    ("metadata", "tcp", net.METADATA, 80),
    ("metadata by name", "tcp", "metadata.inward.test", 80),
    ("metadata in disguise", "tcp", f"::ffff:{net.METADATA}", 80),
    *(("private", "tcp", address, 80) for address in net.OTHER_PRIVATE),
]
LAN: list[Target] = [
    ("lan", "tcp", net.LAN, 80),
    ("lan", "udp", net.LAN, 7),
    ("lan by name", "tcp", "lan.inward.test", 80),
]
OUTSIDE: list[Target] = [("public", "tcp", net.PUBLIC, 80), ("services", "tcp", net.SERVICES, 443)]
BY_NAME: list[Target] = [("public by name", "tcp", "public.test", 80)]
DATAGRAMS: list[Target] = [("public datagrams", "udp", net.ROUTER, 7)]


def template(script: str, network: Network | None = None, allow: tuple[str, ...] = ()) -> Template:
    return Template(
        "t", "T", process=ProcessSpec(("python3", "-u", "-c", script, "{socket}"), network=network, allow=allow)
    )


@contextlib.asynccontextmanager
async def alice_and_bob(
    kind: str, network: Network | None = None, allow: tuple[str, ...] = (), **changes: object
) -> AsyncIterator[tuple[ProcessRuntime, list[Target]]]:
    """She tries; he listens, on targets that are told."""
    async with fresh_runtime(kind, **changes) as (runtime, _):
        await running(runtime, workload(template(SERVER, network, allow), "alices", "alice"))
        await running(runtime, workload(template(LISTENING, network, allow), "bobs", "bob"))
        addresses = own_addresses.parse((await runtime.exec("bobs", ["cat", "/proc/net/fib_trie"])).output.decode())
        hosts = ("127.0.0.1", "::1", *addresses)
        yield (
            runtime,
            [
                *(("neighbour", "tcp", host, port) for host in hosts for port in (5678, 5679)),
                *(("neighbour", "udp", host, 5678) for host in hosts),
                ("neighbour's abstract socket", "abstract", "codehub-test-neighbour", 0),
            ],
        )


async def reached(runtime: Runtime, targets: list[Target], who: str = "alices") -> set[str]:
    result = await runtime.exec(who, ["python3", "-c", TRY, json.dumps(targets)])
    assert result.exit_code == 0, result.output.decode()
    return set(json.loads(result.output))


def test_from_the_machine_itself_everything_is_reached() -> None:
    """Otherwise nothing below would mean anything."""
    with a_busy_machine() as machine:
        targets = [*machine, *INWARD, *LAN, *OUTSIDE, *BY_NAME, *DATAGRAMS]
        done = subprocess.run([sys.executable, "-c", TRY, json.dumps(targets)], capture_output=True, check=True)
    assert set(json.loads(done.stdout)) == {label for label, *_ in targets}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_the_internet_is_reached_and_nothing_else(kind: str, way: str) -> None:
    async with alice_and_bob(kind, network_via=way) as (runtime, neighbour):
        assert (await runtime.way_out()).kind == way
        with a_busy_machine() as machine:
            found = await reached(runtime, [*machine, *neighbour, *INWARD, *LAN, *OUTSIDE, *BY_NAME, *DATAGRAMS])
        assert found == {"public", "services", "public by name", *(["public datagrams"] if way != "relay" else [])}
        assert {"neighbour", "neighbour's abstract socket"} <= await reached(runtime, neighbour, "bobs")


@pytest.mark.parametrize("kind", KINDS)
async def test_an_allowlist_opens_what_it_names_and_nothing_else(kind: str) -> None:
    allow = ("public.test:80", "*.inward.test")
    async with alice_and_bob(kind, Network.ALLOWLIST, allow, network_allow=(net.LAN,)) as (runtime, neighbour):
        # What is judged is what is looked up: the resolver stops at what is no part of a name.
        for host in ("services.test\0.inward.test", f"{net.SERVICES}\0.inward.test", f"{net.SERVICES}%.inward.test"):
            assert await reached(runtime, [("in disguise", "tcp", host, 443)]) == set()
        with a_busy_machine() as machine:
            found = await reached(runtime, [*machine, *neighbour, *INWARD, *LAN, *OUTSIDE, *BY_NAME, *DATAGRAMS])
        assert found == {"public by name", "lan", "lan by name"}
        assert await reached(runtime, [("another port", "tcp", "public.test", 443)]) == set()


@pytest.mark.parametrize("kind", KINDS)
async def test_none_is_nothing(kind: str) -> None:
    async with alice_and_bob(kind, Network.NONE) as (runtime, neighbour):
        with a_busy_machine() as machine:
            targets = [*machine, *neighbour, *INWARD, *LAN, *OUTSIDE, *BY_NAME, *DATAGRAMS]
            assert await reached(runtime, targets) == set()


@pytest.mark.parametrize("way", WAYS)
async def test_a_private_network_that_is_listed_is_open_but_not_the_machine_in_it(way: str) -> None:
    async with alice_and_bob(KINDS[-1], network_via=way, network_private=(ip_network("10.9.0.0/24"),)) as (runtime, _):
        with a_busy_machine() as machine:
            found = await reached(runtime, [*machine, *INWARD, *LAN])
        assert found == {"lan", "lan by name"}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "relay"])
async def test_an_address_that_the_machine_gets_later_is_closed_too(way: str) -> None:
    if not AS_ROOT:
        assert way in {"slirp4netns", "pasta"}  # addresses are given by root; nothing else differs
        return
    async with alice_and_bob(KINDS[-1], network_via=way) as (runtime, _):
        subprocess.run(["ip", "address", "add", "203.0.113.77/24", "dev", "eth0"], check=True)
        try:
            with socket.create_server(("203.0.113.77", 0)) as service:
                target = ("later", "tcp", "203.0.113.77", service.getsockname()[1])

                async def closed() -> bool:
                    return not await reached(runtime, [target])

                await until(closed)
        finally:
            subprocess.run(["ip", "address", "del", "203.0.113.77/24", "dev", "eth0"], check=True)


TOOLS = {
    "pip": (
        ["pip", "install", "-q", "--no-input", "--target", "lib", "-i", "https://services.test/simple", "greeting"],
        "lib/greeting.py",
    ),
    "git": (["git", "clone", "-q", "https://services.test/repository.git"], "repository/.git/HEAD"),
    **(
        {
            "npm": (
                [
                    "npm",
                    "install",
                    "--no-update-notifier",
                    "--no-audit",
                    "--no-fund",
                    "--registry=https://services.test/npm/",
                    "greeting",
                ],
                "node_modules/greeting/index.js",
            )
        }
        if shutil.which("npm")
        else {}
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_packages_are_installed_and_repositories_cloned_by_https(way: str) -> None:
    async with fresh_runtime(KINDS[-1], network_via=way) as (runtime, _):
        await running(runtime, workload(template(SERVER), "alices", "alice"))
        await runtime.put("alices", {"ca.pem": (FOLDER / "ca.pem").read_bytes()})
        trust = [
            "env",
            *(f"{name}=/home/alice/ca.pem" for name in ("PIP_CERT", "GIT_SSL_CAINFO", "npm_config_cafile")),
        ]
        for name, (command, made) in TOOLS.items():
            done = await runtime.exec("alices", [*trust, *command])
            assert done.exit_code == 0, f"{name}: {done.output.decode()}"
            assert (runtime._layout.of("alices").home / made).exists(), name


async def test_a_proxy_on_the_way_out_that_died_is_there_again() -> None:
    """It is started by the first connection, killed here as if memory had run out, and started by the next."""
    async with alice_and_bob(KINDS[0], network_via="relay") as (runtime, _):
        assert await reached(runtime, BY_NAME) == {"public by name"}
        pids = subprocess.run(["pgrep", "-f", "shepherd.*egress"], capture_output=True, check=True).stdout.split()
        for pid in pids:
            subprocess.run(["kill", "-9", pid], check=True)

        async def again() -> bool:
            return await reached(runtime, BY_NAME) == {"public by name"}

        await until(again)
