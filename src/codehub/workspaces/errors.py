"""What may be refused about workspaces."""

from codehub.errors import CodeHubError


class OperationInProgressError(CodeHubError):
    """Operations are not interrupted; the caller waits and asks again."""

    code = "OPERATION_IN_PROGRESS"
    status = 409
    title = "Something is under way"


class InErrorError(CodeHubError):
    code = "WORKSPACE_IN_ERROR"
    status = 409
    title = "The workspace is in error"


class NotInErrorError(CodeHubError):
    code = "WORKSPACE_NOT_IN_ERROR"
    status = 409
    title = "There is nothing to recover from"


class WorkspaceDeletedError(CodeHubError):
    code = "WORKSPACE_DELETED"
    status = 409
    title = "The workspace is in the trash"


class DataLostError(CodeHubError):
    """Recovering would go back to an older copy: only when the person says so."""

    code = "DATA_LOST"
    status = 409
    title = "Files were lost"


class RunningLimitError(CodeHubError):
    code = "RUNNING_LIMIT"
    status = 429
    title = "Too many are running"


class ReservationExpiredError(CodeHubError):
    """Over, used, or another person's: they cannot be told apart."""

    code = "RESERVATION_EXPIRED"
    status = 409
    title = "The reservation is over"


class WorkspaceLimitError(CodeHubError):
    code = "WORKSPACE_LIMIT"
    status = 429
    title = "Too many workspaces"


class BulkLimitError(CodeHubError):
    code = "BULK_LIMIT"
    status = 429
    title = "Too much is under way"


class ShareLimitError(CodeHubError):
    code = "SHARE_LIMIT"
    status = 429
    title = "Shared too often"


class OwnsItAlreadyError(CodeHubError):
    code = "OWNS_IT_ALREADY"
    status = 409
    title = "The workspace is theirs already"


class NotIsolatedError(CodeHubError):
    """Without an origin per workspace a guest's browser would run the owner's scripts as the guest."""

    code = "ORIGIN_NOT_ISOLATED"
    status = 409
    title = "Workspaces have no origin of their own"
