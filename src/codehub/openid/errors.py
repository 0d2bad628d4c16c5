"""Why a login by a provider does not happen; the one exception tree's branch for it. Pages say it by `kind`."""

from typing import Any

from codehub.errors import CodeHubError, NotFoundError


class ProviderNotFoundError(NotFoundError):
    code = "PROVIDER_NOT_FOUND"
    title = "There is no such provider"


class LoginRefusedError(CodeHubError):
    """`kind` names the texts of the page; the detail is for the operator's log and has no secret in it."""

    code = "LOGIN_REFUSED"
    status = 403
    title = "This login did not work"
    kind = "token"

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__(detail, **extra)


class FlowOverError(LoginRefusedError):
    """Unknown, used before, too old, or of another browser: these cannot be told apart from outside."""

    status = 400
    kind = "over"


class MixedUpError(LoginRefusedError):
    """An answer of one provider came where another one's was expected."""

    status = 400
    kind = "mixed"


class DeniedError(LoginRefusedError):
    """The person said no there."""

    kind = "denied"


class ProviderRefusedError(LoginRefusedError):
    """The provider itself says that something is wrong: mostly with how this CodeHub is registered there."""

    status = 502
    kind = "provider"


class BadTokenError(LoginRefusedError):
    """What it sent is not what a good provider would send for this login."""

    status = 502
    kind = "token"


class UnknownKeyError(BadTokenError):
    """Signed with a key that we have not read; keys are rotated, so it is read again once."""


class ProviderAwayError(LoginRefusedError):
    code = "PROVIDER_AWAY"
    status = 503
    kind = "away"


class StrangerError(LoginRefusedError):
    """A good login of a person who has no account here, and may not get one this way."""

    kind = "stranger"


class PersonInactiveError(LoginRefusedError):
    kind = "inactive"


class OtherSessionError(LoginRefusedError):
    """Another person logged in with this browser in the meantime: their session is not ended unasked."""

    status = 409
    kind = "other_session"


class IdentityTakenError(LoginRefusedError):
    status = 409
    kind = "taken"
