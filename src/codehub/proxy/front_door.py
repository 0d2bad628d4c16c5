"""The director of a platform without workspaces of its own: everything is the API's, and no workspace is known."""

from codehub.proxy import answers
from codehub.proxy.model import Address, Answer, Decision, Failure, Forward, RequestHead

WORKSPACES = b"/w/"
UNKNOWN = answers.problem(404, "There is no such workspace.")


class FrontDoor:
    def __init__(self, api: Address) -> None:
        self._api = Forward(api)

    def decide(self, head: RequestHead) -> Decision:
        target = head.target
        if target.startswith(WORKSPACES) or head.path == b"/w":
            return UNKNOWN
        return self._api

    def unreachable(self, _head: RequestHead, _forward: Forward, failure: Failure) -> Answer:
        return answers.of_failure(failure)
