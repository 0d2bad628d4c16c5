"""Strangers share a few places at the API, address by address; those who are logged in pass them by."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_network

from codehub.proxy.admission import Capacity
from codehub.proxy.model import Decision, Forward, Hold, RequestHead
from codehub.proxy.queueing import AFew, Entry, FairQueue
from tests.proxy.harness import Proxy, ToOne, Upstream, answers_in, exchange, one_answer, read_until, wait_until
from tests.proxy.test_strangers import GET, LAST, STRANGER, Slowly, connected, statuses, who


@contextlib.contextmanager
def queued(queue: FairQueue, **options: object) -> Iterator[tuple[Proxy, Upstream, Slowly]]:
    script = Slowly()
    upstream = Upstream(script)
    proxy = Proxy(ToOne(Forward(upstream.address, queue=queue)), **options)  # type: ignore[arg-type]
    try:
        yield proxy, upstream, script
    finally:
        script.release.set()
        proxy.close()
        upstream.close()


def has_asked(thing: object) -> bool:
    return hasattr(thing, "head")


def test_few_of_many_strangers_are_at_the_upstream_at_once_and_all_are_answered() -> None:
    queue = FairQueue(8, 256)
    with queued(queue) as (proxy, upstream, script), connected(proxy, 60, GET % STRANGER) as clients:
        wait_until("all have asked", lambda: proxy.call(lambda: len(queue)) == 56)
        wait_until("some have a place", lambda: upstream.connections == 4)  # one address leaves as many to others
        assert one_answer(exchange(proxy, LAST % who("mina"))).status == 200
        script.release.set()
        for client in clients:
            assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
        assert upstream.connections <= 9
        assert proxy.call(lambda: (len(queue), queue._inside, queue._held)) == (0, {}, {})


def test_no_more_wait_than_there_is_room_for() -> None:
    queue = FairQueue(8, 32)
    with queued(queue) as (proxy, _, script), connected(proxy, 60, GET % STRANGER) as clients:
        wait_until("there is no room", lambda: proxy.call(lambda: len(queue)) == 16)
        wait_until("all have asked", lambda: proxy.call(lambda: sum(map(has_asked, proxy.engine.watched))) == 60)
        assert statuses(clients) == [503] * (60 - 4 - 16)
        script.release.set()


def test_strangers_of_another_address_do_not_wait_behind_them() -> None:
    queue, trusted = FairQueue(8, 256), (ip_network("127.0.0.0/8"),)
    one, other = (STRANGER + b"X-Forwarded-For: 203.0.113.%d\r\n" % n for n in (1, 2))
    with queued(queue, trusted=trusted) as (proxy, _, _), connected(proxy, 60, GET % one):
        wait_until("all have asked", lambda: proxy.call(lambda: len(queue)) == 56)
        assert one_answer(exchange(proxy, LAST % other)).status == 200


def test_whoever_leaves_while_waiting_is_forgotten() -> None:
    queue = FairQueue(8, 256)
    with queued(queue) as (proxy, _, _):
        with connected(proxy, 60, GET % STRANGER) as clients:
            wait_until("all have asked", lambda: proxy.call(lambda: len(queue)) == 56)
            for client in clients:  # a reset, as an end alone may be half of one
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_until("all have left", lambda: proxy.call(lambda: proxy.engine.crowd.count) == 0)
        assert proxy.call(lambda: (len(queue), queue._inside, queue._waiting)) == (0, {}, {})


def test_bodies_and_further_requests_of_those_who_waited_arrive() -> None:
    queue = FairQueue(2, 64)
    upstream = Upstream()
    proxy = Proxy(ToOne(Forward(upstream.address, queue=queue)))
    post = b"POST / HTTP/1.1\r\nHost: x\r\n" + STRANGER + b"Content-Length: 40000\r\n\r\n" + b"z" * 40000
    with connected(proxy, 8, post + LAST % STRANGER) as clients:
        for client in clients:
            received = b"".join(iter(lambda: client.recv(65536), b""))  # noqa: B023
            assert [got.status for got in answers_in(received, b"POST", b"GET")] == [200, 200]
    assert sorted(len(seen.body) for seen in upstream.seen) == [0] * 8 + [40000] * 8
    proxy.close()
    upstream.close()


def test_strangers_leave_open_connections_to_others() -> None:
    upstream = Upstream()
    proxy = Proxy(ToOne(Forward(upstream.address, queue=FairQueue(), reserve=2)))
    for asker in (STRANGER, STRANGER, STRANGER, STRANGER):
        exchange(proxy, LAST % asker)
    assert upstream.connections == 3  # two stay open, the third is the strangers'
    exchange(proxy, LAST % who("mina"))
    assert upstream.connections == 3
    proxy.close()
    upstream.close()


# Requests that are held.


def test_requests_that_are_held_count_for_their_person_and_make_room() -> None:
    upstream = Upstream()
    director = ToOne(Forward(upstream.address))

    async def never() -> Forward:
        await asyncio.Event().wait()
        return director.forward

    def decide(head: RequestHead) -> Decision:
        return director.forward if head.target == b"/last" else Hold(never(), 60, None)  # type: ignore[arg-type]

    director.decide_by = decide
    proxy = Proxy(director, capacity=Capacity(clients=64, upstreams=64, backlog=256))
    with connected(proxy, 200, GET % who("mina")):
        wait_until("some were shed", lambda: proxy.call(lambda: len(proxy.engine.crowd._groups.get("mina", ()))) >= 30)
        assert one_answer(exchange(proxy, LAST % who("jun"))).status == 200
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200
    proxy.close()
    upstream.close()


# The rules.


class Waiting:
    def __init__(self) -> None:
        self.told = ""

    def admitted(self) -> None:
        self.told = "admitted"

    def in_vain(self) -> None:
        self.told = "in vain"


async def test_a_place_is_not_kept_for_long_and_nobody_waits_forever() -> None:
    queue = FairQueue(2, 8)
    slow, next_, last = Waiting(), Waiting(), Waiting()
    assert [queue.enter(one, "@a") for one in (slow, next_, last)] == [Entry.NOW, Entry.LATER, Entry.LATER]
    queue._inside[slow] = ("@a", -100.0)
    queue._waiting["@a"][last] = -100.0
    queue._look()
    await asyncio.sleep(0)
    assert (next_.told, last.told) == ("admitted", "in vain")
    queue.leave(slow)  # which has none any more
    assert list(queue._inside) == [next_]


def test_a_few_of_each_name() -> None:
    few = AFew(1)
    with few.one_more("mina", "a") as first, few.one_more("mina", "a") as second, few.one_more("jun", "a") as third:
        assert (first, second, third) == (True, False, True)
    assert not few._counts
