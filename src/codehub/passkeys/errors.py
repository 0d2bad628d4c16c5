"""What can go wrong with passkeys; the one exception tree's branch for them."""

from codehub.errors import CodeHubError, NotFoundError


class PasskeyNotFoundError(NotFoundError):
    code = "PASSKEY_NOT_FOUND"
    title = "There is no such passkey"


class PasskeyRefusedError(CodeHubError):
    """Unknown, of a person who may not log in, or not signed with its key: in the same words."""

    code = "PASSKEY_REFUSED"
    status = 401
    title = "This passkey opens no account here"


class PasskeyBlockedError(CodeHubError):
    code = "PASSKEY_BLOCKED"
    status = 401
    title = "This passkey is blocked"


class PasskeyOriginError(CodeHubError):
    code = "PASSKEY_ORIGIN"
    status = 403
    title = "Passkeys are not used from this address"


class PasskeyChallengeError(CodeHubError):
    """Too old, used before, of another browser, for another purpose or another person's."""

    code = "PASSKEY_CHALLENGE"
    status = 409
    title = "Ask for the passkey again"


class PasskeysUnavailableError(CodeHubError):
    code = "PASSKEYS_UNAVAILABLE"
    status = 409
    title = "Passkeys do not work at this address"


class PasskeyExistsError(CodeHubError):
    code = "PASSKEY_EXISTS"
    status = 409
    title = "This passkey is registered already"


class PasskeyLimitError(CodeHubError):
    code = "PASSKEY_LIMIT"
    status = 429
    title = "Too many passkeys"
