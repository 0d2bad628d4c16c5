"""What can go wrong with schedules; the one exception tree's branch for them."""

from codehub.errors import CodeHubError, NotFoundError


class ScheduleNotFoundError(NotFoundError):
    code = "SCHEDULE_NOT_FOUND"
    title = "The class has no such schedule"


class ScheduleLimitError(CodeHubError):
    code = "SCHEDULE_LIMIT"
    status = 429
    title = "Too many schedules for this class"


class NoLessonError(CodeHubError):
    code = "NO_LESSON"
    status = 409
    title = "There is no lesson to come"
