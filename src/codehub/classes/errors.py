"""What can go wrong with classes; the one exception tree's branch for them."""

from codehub.errors import CodeHubError, InvalidRequestError, NotFoundError


class ClassNotFoundError(NotFoundError):
    code = "CLASS_NOT_FOUND"
    title = "There is no such class"


class NotALearnerError(CodeHubError):
    code = "NOT_A_LEARNER"
    status = 409
    title = "Only learners attend a class"


class NotATeacherError(CodeHubError):
    code = "NOT_A_TEACHER"
    status = 409
    title = "Only teachers teach a class"


class LastTeacherError(CodeHubError):
    code = "LAST_TEACHER"
    status = 409
    title = "A class keeps one teacher"


class ClassArchivedError(CodeHubError):
    code = "CLASS_ARCHIVED"
    status = 409
    title = "The class is archived"


class ClassLimitError(CodeHubError):
    code = "CLASS_LIMIT"
    status = 429
    title = "Too many classes"


class MemberLimitError(CodeHubError):
    code = "MEMBER_LIMIT"
    status = 429
    title = "Too many people in this class"


class InvitationNotFoundError(NotFoundError):
    """Wrong, used up, expired or revoked: they cannot be told apart."""

    code = "INVITATION_NOT_FOUND"
    title = "There is no such invitation"

    def __init__(self) -> None:
        super().__init__("this code is wrong, or it is over: ask your teacher for the code")


class ListRefusedError(InvalidRequestError):
    """`reason` is what a page says of it, in its reader's language; `n` is the number in it."""

    def __init__(self, detail: str, *, reason: str, n: int = 0) -> None:
        super().__init__(detail, field="body")
        self.reason = reason
        self.n = n


class ImportChangedError(CodeHubError):
    code = "IMPORT_CHANGED"
    status = 409
    title = "Something changed since the preview"


class InvitationLimitError(CodeHubError):
    code = "INVITATION_LIMIT"
    status = 429
    title = "Too many invitations of this class"
