"""The one exception tree. `http.problems` turns it into HTTP, `cli` into one line and an exit code; no other does."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

ERRORS_AT_MOST = 20  # of one request: a body can be wrong in a hundred thousand places


def printable(text: str) -> str:
    """Names in a body are the sender's: half a surrogate pair is valid JSON, and cannot be sent back as UTF-8."""
    return text.encode("utf-8", "replace").decode()[:200]


class CodeHubError(Exception):
    """Something a person can be told about. `code` is stable; the message says what to do."""

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong"

    def __init__(self, detail: str, *, retry_after: int | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after  # seconds, where waiting helps
        self.extra: Mapping[str, Any] = extra


class InvalidRequestError(CodeHubError):
    """`field` names what is wrong, as the caller wrote it."""

    code = "INVALID_REQUEST"
    status = 400
    title = "The request is not valid"

    def __init__(self, detail: str, *, field: str) -> None:
        super().__init__(f"{field}: {detail}", errors=[{"field": field, "message": detail}])

    @classmethod
    def of(cls, found: Sequence[tuple[str, str]]) -> Self:
        """Several at once, each a field and what is wrong with it."""
        shown = [(printable(field), printable(message)) for field, message in found[:ERRORS_AT_MOST]]
        error = cls(shown[0][1], field=shown[0][0])
        more = f"; and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        error.detail = "; ".join(f"{field}: {message}" for field, message in shown) + more
        error.extra = {"errors": [{"field": field, "message": message} for field, message in shown]}
        error.args = (error.detail,)
        return error


class PasswordRefusedError(InvalidRequestError):
    """`reason` is what a page says of it, in its reader's language."""

    def __init__(self, detail: str, *, reason: str) -> None:
        super().__init__(detail, field="password")
        self.reason = reason


class UnauthenticatedError(CodeHubError):
    code = "UNAUTHENTICATED"
    status = 401
    title = "Log in first"


class ForbiddenError(CodeHubError):
    code = "FORBIDDEN"
    status = 403
    title = "Not allowed"


class NotFoundError(CodeHubError):
    """Also the answer for what belongs to another user."""

    code = "NOT_FOUND"
    status = 404
    title = "Not found"


class UserExistsError(CodeHubError):
    code = "USER_EXISTS"
    status = 409
    title = "The name is taken"


class NameKeptError(CodeHubError):
    code = "NAME_KEPT"
    status = 409
    title = "This user keeps their name"


class PersonKeptError(CodeHubError):
    code = "USER_KEPT"
    status = 409
    title = "This user cannot be removed"


class DeactivatedError(CodeHubError):
    code = "USER_DEACTIVATED"
    status = 409
    title = "The person is deactivated"


class LastAdminError(CodeHubError):
    code = "LAST_ADMIN"
    status = 409
    title = "One user must stay admin"


class LastWayInError(CodeHubError):
    code = "LAST_WAY_IN"
    status = 409
    title = "One way in must stay"


class WrongCredentialsError(CodeHubError):
    """In the same words whatever is wrong: who has an account is not said to those who guess."""

    code = "WRONG_CREDENTIALS"
    status = 401
    title = "The name or the password is wrong"


class WrongPasswordError(CodeHubError):
    """Of a person who is logged in: a 401 would say that they are not."""

    code = "WRONG_PASSWORD"
    status = 403
    title = "The password is wrong"


class LoggedInError(CodeHubError):
    """A browser's session is not replaced by another person's unasked."""

    code = "LOGGED_IN_AS_ANOTHER"
    status = 409
    title = "Another person is logged in with this browser"


class TooManyTriesError(CodeHubError):
    code = "TOO_MANY_TRIES"
    status = 429
    title = "Too many wrong tries"


class RateLimitError(CodeHubError):
    code = "RATE_LIMIT"
    status = 429
    title = "Too often"


class TokenLimitError(CodeHubError):
    code = "TOKEN_LIMIT"
    status = 429
    title = "Too many access tokens"


class AccountLimitError(CodeHubError):
    code = "ACCOUNT_LIMIT"
    status = 429
    title = "Too many accounts"


class StreamLimitError(CodeHubError):
    code = "STREAM_LIMIT"
    status = 429
    title = "Too many streams are open"


class UnavailableError(CodeHubError):
    """A server we depend on is away; the same request may work in a moment."""

    code = "UNAVAILABLE"
    status = 503
    title = "Not available right now"


class BusyError(CodeHubError):
    """All of something is in use; `retry_after` says when to come again."""

    code = "BUSY"
    status = 503
    title = "Busy right now"


class StartError(CodeHubError):
    """A command cannot start: shown as one line, never as a traceback."""

    code = "START_FAILED"


class SettingsError(StartError):
    code = "SETTINGS"


class LeaseLostError(CodeHubError):
    """A leader tried to write after its lease had gone to another coordinator. The write did not happen."""

    code = "LEASE_LOST"
