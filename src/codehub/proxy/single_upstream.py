"""The simplest director: every request goes to one upstream. An engine has it until its own director is built."""

from codehub.proxy import answers
from codehub.proxy.model import Address, Answer, Decision, Failure, Forward, RequestHead


class SingleUpstream:
    def __init__(self, upstream: Address) -> None:
        self._upstream = Forward(upstream)

    def decide(self, _head: RequestHead) -> Decision:
        return self._upstream

    def unreachable(self, _head: RequestHead, _forward: Forward, failure: Failure) -> Answer:
        return answers.of_failure(failure)
