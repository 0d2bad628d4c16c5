"""What can go wrong with what a class is given; the one exception tree's branch for it."""

from codehub.errors import CodeHubError, NotFoundError


class AssignmentNotFoundError(NotFoundError):
    code = "ASSIGNMENT_NOT_FOUND"
    title = "The class was not given this"


class AssignmentExistsError(CodeHubError):
    code = "ASSIGNMENT_EXISTS"
    status = 409
    title = "The class has this course from another day"


class AssignmentLimitError(CodeHubError):
    code = "ASSIGNMENT_LIMIT"
    status = 429
    title = "Too many courses for this class"


class HandNotFoundError(NotFoundError):
    code = "HAND_NOT_FOUND"
    title = "Nobody asks for help with this"


class HandEndedError(CodeHubError):
    code = "HAND_ENDED"
    status = 409
    title = "It was answered already, or taken back"


class NoTeacherError(CodeHubError):
    code = "NO_TEACHER"
    status = 409
    title = "No teacher would see it"
