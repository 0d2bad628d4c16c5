"""Who may be reached from inside, decided: addresses in all their disguises, allowlists, the firewall's words."""

import asyncio
import ipaddress
import socket

import pytest

from codehub import allowlist
from codehub.runtimes.network import firewall, rules, ways
from codehub.runtimes.shepherd import egress, own_addresses
from codehub.runtimes.shepherd.spec import RELAY, SLIRP4NETNS
from codehub.settings import RuntimeConfig
from codehub.templates.model import Network, ProcessSpec
from tests.virtual_time import ManualClock, settle

INWARD = """
    0.0.0.0 0.1.2.3 127.0.0.1 127.255.0.1 169.254.169.254 224.0.0.251 255.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1
    100.100.100.200 172.16.0.1 172.31.255.255 192.168.0.1 192.0.0.8 198.18.0.1 :: ::1 fe80::1 fec0::1 ff02::1 fd00::1
    fd00:ec2::254 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::7f00:1
    64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1 2001:0:1:2:3:4:80ff:fffe 100::1
"""
OUTWARD = """
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.167.0.1 2606:4700::1
    64:ff9b::1.1.1.1
"""


@pytest.mark.parametrize("address", INWARD.split())
def test_an_address_that_leads_inward_is_refused_in_every_disguise(address: str) -> None:
    assert rules.Rules().refuses_address(ipaddress.ip_address(address))
    everything = rules.Rules(allowlist.parse(["*.test"]))
    assert everything.refuses_address(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", OUTWARD.split())
def test_an_address_outside_is_reached(address: str) -> None:
    assert rules.Rules().refuses_address(ipaddress.ip_address(address)) is None


def test_an_operator_opens_private_networks_but_never_the_machine_or_its_link() -> None:
    opened = rules.Rules(private=rules.networks(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/0", "0.0.0.0/0"]))
    for address in ("10.1.2.3", "192.168.1.1", "::ffff:10.0.0.1", "fd00::1"):
        assert opened.refuses_address(ipaddress.ip_address(address)) is None
    for address in ("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1"):
        assert opened.refuses_address(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("entry", "host", "port", "named"),
    [
        ("mirror.test", "mirror.test", 443, True),
        ("mirror.test", "Mirror.test.", 443, True),
        ("mirror.test", "evilmirror.test", 443, False),
        ("mirror.test", "mirror.test.evil.net", 443, False),
        ("mirror.test", "files.mirror.test", 443, False),
        ("*.mirror.test", "files.mirror.test", 443, True),
        ("*.mirror.test", "mirror.test", 443, False),
        ("git.test:22", "git.test", 22, True),
        ("git.test:22", "git.test", 443, False),
        ("10.1.2.3", "10.1.2.3", 80, True),
        ("10.1.2.3", "10.1.2.4", 80, False),
        ("10.0.0.0/8", "10.1.2.4", 80, True),
        ("10.1.2.3:80", "10.1.2.3", 81, False),
        ("mirror.test", "151.101.0.223", 443, False),
        ("fd00::/8", "[fd00::1]", 443, True),
    ],
)
def test_an_allowlist_names_exactly_what_it_says(entry: str, host: str, port: int, named: bool) -> None:
    refused = rules.Rules(allowlist.parse([entry])).refuses_host(host, port)
    assert (refused is None) is named


@pytest.mark.parametrize(
    "entry", ["a b", "http://mirror.test", "mirror.test:0", "mirror.test:99999", "*", "a..b", "*.*.org", "a/b"]
)
def test_what_is_no_host_is_refused_by_name(entry: str) -> None:
    assert entry in str(allowlist.complaint(["mirror.test", entry]))


def test_an_address_that_an_allowlist_names_is_open_though_it_is_private() -> None:
    exam = rules.Rules(allowlist.parse(["10.1.2.3", "mirror.test"]))
    assert exam.refuses_address(ipaddress.ip_address("10.1.2.3")) is None
    assert exam.refuses_address(ipaddress.ip_address("10.1.2.4"))


def test_the_firewall_says_what_the_rules_say() -> None:
    text = firewall.inside(rules.networks(["10.9.0.0/24"]), ["10.0.2.3"], ["203.0.113.2"])
    never, opened, closed = (text.index(part) for part in ("127.0.0.0/8", "10.9.0.0/24", "10.0.0.0/8"))
    assert text.index("ip daddr { 10.0.2.3 } udp dport 53 accept") < never < opened < closed
    assert text.index("@own reject") < opened
    assert "elements = { 203.0.113.2 }" in text


def test_a_request_for_a_proxy_is_read_and_another_is_not() -> None:
    asked = egress.parse(
        b"GET http://a.test:8080/x?y=1 HTTP/1.1\r\nHost: evil\r\nProxy-Connection: keep-alive\r\nA: b\r\n\r\n"
    )
    assert (asked.host, asked.port) == ("a.test", 8080)
    assert asked.head == b"GET /x?y=1 HTTP/1.1\r\nHost: a.test:8080\r\nA: b\r\nConnection: close\r\n\r\n"
    assert egress.parse(b"CONNECT [2606::1]:443 HTTP/1.1\r\n\r\n") == egress.Request("2606::1", 443, b"")
    for head in (
        b"CONNECT evil.test\0.good.test:80 HTTP/1.1\r\n\r\n",
        b"CONNECT 203.0.113.1%.good.test:80 HTTP/1.1\r\n\r\n",
        b"GET http://evil.test\0.good.test/ HTTP/1.1\r\n\r\n",
        b"CONNECT evil.test/.good.test:80 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT a HTTP/1.1\r\n\r\n",
        b"GET ftp://a/ HTTP/1.1\r\n\r\n",
        b"\xff\r\n\r\n",
        b"x\r\n\r\n",
    ):
        with pytest.raises(egress.RefusedError):
            egress.parse(head)


def test_an_allowlist_goes_through_the_proxy_whatever_else_there_is() -> None:
    way = ways.Way(SLIRP4NETNS, "", {"nft": "/nft", "slirp4netns": "/s"}, ("10.0.2.3",))
    config = RuntimeConfig(network_allow=("mirror.test",))
    exam = ways.of(ProcessSpec(("x",), network=Network.ALLOWLIST, allow=("git.test",)), config, way)
    assert (exam.kind, exam.allow) == (RELAY, ["mirror.test", "git.test"])
    assert ways.of(ProcessSpec(("x",)), config, way).kind == SLIRP4NETNS


def test_this_machines_addresses_are_read_from_the_kernels_table() -> None:
    table = (
        "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.2\n        /32 host LOCAL\n"
        "     |-- 192.0.2.255\n        /32 link BROADCAST\n"
    )
    assert own_addresses.parse(table + "     |-- 127.0.0.1\n        /32 host LOCAL\n") == ["192.0.2.2"]


def test_a_firewall_that_forwards_nothing_is_seen() -> None:
    docker = (
        "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n"
    )
    assert ways.forwards_nothing(docker)
    assert not ways.forwards_nothing(docker.replace("policy drop", "policy accept"))


async def test_a_proxy_that_nobody_uses_ends_and_one_in_use_does_not() -> None:
    """The shepherd starts the next one when somebody connects; what is connected meanwhile is never cut off."""
    clock = ManualClock()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    serving = asyncio.create_task(egress.Egress(rules.Rules(), clock).serve(listener))
    await settle()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n")
    while not asyncio.all_tasks() - {asyncio.current_task(), serving}:
        await settle()
    await clock.advance(10 * egress.IDLE_SECONDS)
    assert not serving.done()
    writer.write(b"\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 403 Forbidden")
    writer.close()
    await clock.advance(egress.IDLE_SECONDS + 2 * egress.LOOK_SECONDS)
    await serving
    listener.close()
