"""What may be refused about plans, sessions and runs."""

from codehub.errors import CodeHubError, NotFoundError


class PlanNotFoundError(NotFoundError):
    code = "PLAN_NOT_FOUND"


class SessionNotFoundError(NotFoundError):
    code = "SESSION_NOT_FOUND"


class RunNotFoundError(NotFoundError):
    code = "RUN_NOT_FOUND"


class SessionAlreadyCompletedError(CodeHubError):
    code = "SESSION_ALREADY_COMPLETED"
    status = 409
    title = "The session is completed"


class InvalidTransitionError(CodeHubError):
    code = "INVALID_TRANSITION"
    status = 409
    title = "It cannot become that any more"


class IdempotencyKeyConflictError(CodeHubError):
    code = "IDEMPOTENCY_KEY_CONFLICT"
    status = 409
    title = "The key was used for another request"


class IdempotencyKeyInUseError(CodeHubError):
    code = "IDEMPOTENCY_KEY_IN_USE"
    status = 409
    title = "A request with this key is being handled"


class IdempotencyKeyLimitError(CodeHubError):
    code = "IDEMPOTENCY_KEY_LIMIT"
    status = 429
    title = "Too many keys"


class SnapshotLimitError(CodeHubError):
    code = "SNAPSHOT_LIMIT"
    status = 413
    title = "The run has saved too much"


class RunNotRunningError(CodeHubError):
    code = "RUN_NOT_RUNNING"
    status = 409
    title = "The run has ended"


class RunTakenOverError(CodeHubError):
    """Another page of the same person started the session again and has the run now."""

    code = "RUN_TAKEN_OVER"
    status = 409
    title = "The run goes on elsewhere"


class StepOutOfOrderError(CodeHubError):
    code = "STEP_OUT_OF_ORDER"
    status = 409
    title = "Another step comes next"


class WorkspaceNotRunningError(CodeHubError):
    code = "WORKSPACE_NOT_RUNNING"
    status = 409
    title = "The workspace does not run"


class HomeFullError(CodeHubError):
    code = "HOME_FULL"
    status = 409
    title = "The workspace is full"


class StarterFilesError(CodeHubError):
    """Something of the learner's stands where a starter file, or its folder, should be."""

    code = "STARTER_FILES_BLOCKED"
    status = 409
    title = "A starter file could not be put"


class PracticeBusyError(CodeHubError):
    """What a PRACTICE needs of the coordinator has not ended, or not well: the same again goes on waiting for it."""

    code = "PRACTICE_BUSY"
    status = 503
    title = "It has not ended yet"


class CheckFailedError(CodeHubError):
    code = "CHECK_FAILED"
    status = 422
    title = "Some answers are wrong"


class PracticeFailedError(CodeHubError):
    code = "PRACTICE_FAILED"
    status = 422
    title = "Some checks did not pass"


class PlanLimitError(CodeHubError):
    code = "PLAN_LIMIT"
    status = 429
    title = "Too many plans"
