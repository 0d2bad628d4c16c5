"""What can go wrong with courses; the one exception tree's branch for them."""

from codehub.errors import CodeHubError, NotFoundError


class CourseNotFoundError(NotFoundError):
    code = "COURSE_NOT_FOUND"
    title = "There is no such course"


class CourseExistsError(CodeHubError):
    code = "COURSE_EXISTS"
    status = 409
    title = "A course has this key already"


class CourseChangedError(CodeHubError):
    code = "COURSE_CHANGED"
    status = 409
    title = "The course has a newer version"


class CourseShippedError(CodeHubError):
    code = "COURSE_SHIPPED"
    status = 409
    title = "The course comes with the product"


class CourseWithdrawnError(CodeHubError):
    code = "COURSE_WITHDRAWN"
    status = 409
    title = "The course is withdrawn"


class CourseLimitError(CodeHubError):
    code = "COURSE_LIMIT"
    status = 429
    title = "Too many courses"


class DraftNotFoundError(NotFoundError):
    """Also of another person's."""

    code = "COURSE_DRAFT_NOT_FOUND"
    title = "What was sent is not kept any more"


class DraftChangedError(CodeHubError):
    code = "COURSE_DRAFT_CHANGED"
    status = 409
    title = "Saving it would do another thing than was shown"
