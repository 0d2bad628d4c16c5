"""Whoever sends requests ahead of their answers has them answered in turn with everybody else's."""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator

from codehub.proxy import answers
from codehub.proxy.exchange import REFUSALS
from codehub.proxy.model import Address, Answer, Decision, Forward, RequestHead
from codehub.proxy.read_fairness import REQUESTS
from tests.proxy.harness import Proxy, ToOne, answers_in, exchange, one_answer, proxied, read_all, wait_until

AHEAD = 2000
GET = b"GET /ours HTTP/1.1\r\nHost: x\r\nX-Who: %b\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nX-Who: %b\r\nConnection: close\r\n\r\n"
DONE = Answer(200, (), b"")


class Ours(ToOne):
    """Answers by itself, and notes whose requests it answered in which round of the loop."""

    def __init__(self, answer: Answer = DONE) -> None:
        super().__init__(Forward(Address(host="127.0.0.1", port=9)))
        self.decide_by = self._decide
        self.answer = answer
        self.round = 0
        self.seen: list[tuple[int, str, bytes]] = []
        self.proxy: Proxy

    def count_rounds(self) -> None:
        self.round += 1
        self.proxy.loop.call_soon(self.count_rounds)

    def _decide(self, head: RequestHead) -> Decision:
        self.seen.append((self.round, head.principal, head.target))
        return self.answer


@contextlib.contextmanager
def ours(answer: Answer = DONE) -> Iterator[tuple[Proxy, Ours]]:
    director = Ours(answer)
    director.proxy = proxy = Proxy(director)
    proxy.call(director.count_rounds)
    try:
        yield proxy, director
    finally:
        proxy.close()


def reading(client: socket.socket) -> threading.Thread:
    thread = threading.Thread(target=read_all, args=(client,), daemon=True)
    thread.start()
    return thread


def test_a_few_requests_that_were_sent_ahead_are_answered_in_a_round() -> None:
    with ours() as (proxy, director), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proxy.connect()) for _ in range(4)]
        threads = [reading(client) for client in clients]
        for client in clients:
            client.sendall(GET % b"mina" * AHEAD + LAST % b"mina")
        for thread in threads:
            thread.join(20)
        assert len(director.seen) == len(clients) * (AHEAD + 1)
        # One of each connection when it is read, and a few of all together.
        assert max(Counter(number for number, _, _ in director.seen).values()) <= REQUESTS + len(clients)


def test_others_are_served_between_them() -> None:
    with ours() as (proxy, director), proxy.connect() as flood, proxy.connect() as other:
        thread = reading(flood)

        def both_send() -> None:  # in one round of the loop
            flood.sendall(GET % b"mina" * AHEAD + LAST % b"mina")
            other.sendall(LAST % b"jun")

        proxy.call(both_send)
        assert one_answer(read_all(other)).status == 200
        thread.join(20)
        place = [who for _, who, _ in director.seen].index("jun")
        assert place < 10 * REQUESTS
        assert len(director.seen) == AHEAD + 2


def test_requests_that_were_sent_ahead_are_all_answered_in_order() -> None:
    ahead = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(200))
    with proxied() as (proxy, upstream):
        received = exchange(proxy, ahead, half_close=True)
        assert [got.status for got in answers_in(received, *[b"GET"] * 200)] == [200] * 200
        assert [seen.target for seen in upstream.seen] == [b"/%d" % n for n in range(200)]
    with ours() as (proxy, director):
        received = exchange(proxy, ahead, half_close=True)
        assert received.count(b"HTTP/1.1 200") == 200
        assert [target for _, _, target in director.seen] == [b"/%d" % n for n in range(200)]


def test_a_stranger_who_is_refused_again_and_again_has_to_connect_anew() -> None:
    with ours(answers.problem(421, "Not here.")) as (proxy, director):
        received = exchange(proxy, GET % b"stranger" * 100)
        assert received.count(b"HTTP/1.1 421") == REFUSALS
        assert len(director.seen) == REFUSALS
        wait_until("all have left", lambda: proxy.call(lambda: proxy.engine.crowd.count) == 0)
