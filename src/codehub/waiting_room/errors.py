"""What may be refused in the waiting room. `api` answers these in the shape of `{"error": {code, message}}`."""

from codehub.errors import CodeHubError, NotFoundError


class EventNotFoundError(NotFoundError):
    code = "EVENT_NOT_FOUND"
    title = "There is no such event"


class PlaceNotFoundError(NotFoundError):
    code = "PLACE_NOT_FOUND"
    title = "You have no place there"


class TokenExpiredError(NotFoundError):
    """Also for one that was never given out: they cannot be told apart."""

    code = "TOKEN_EXPIRED"
    title = "The waiting token is over"

    def __init__(self) -> None:
        super().__init__("Waiting token expired due to inactivity")


class AlreadyAdmittedError(CodeHubError):
    code = "ALREADY_ADMITTED"
    status = 409
    title = "You have a place already"


class NotYourTurnError(CodeHubError):
    code = "NOT_YOUR_TURN"
    status = 409
    title = "It is not your turn yet"


class EventClosedError(CodeHubError):
    code = "EVENT_CLOSED"
    status = 409
    title = "The event takes no more people"


class EventExistsError(CodeHubError):
    code = "EVENT_EXISTS"
    status = 409
    title = "There is such an event already"


class EventBusyError(CodeHubError):
    code = "EVENT_BUSY"
    status = 409
    title = "People wait in line"


class EventLimitError(CodeHubError):
    code = "EVENT_LIMIT"
    status = 429
    title = "Too many events"
