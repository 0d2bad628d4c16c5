"""What the audit log can say: codes, with the data that each carries. Sentences are made by `i18n.audit`."""

from collections.abc import Mapping
from enum import StrEnum


class Code(StrEnum):
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"
    USER_RENAME = "user.rename"
    LOGIN_LINK_CREATE = "login_link.create"
    LOGIN = "login"
    TOKEN_CREATE = "token.create"  # noqa: S105 (no password)
    TOKEN_REVOKE = "token.revoke"  # noqa: S105
    SESSION_REVOKE = "session.revoke"
    SESSION_STOLEN = "session.stolen"
    WORKSPACE_DOWNLOAD = "workspace.download"
    WORKSPACE_ENTER = "workspace.enter"
    WORKSPACE_DESTROY = "workspace.destroy"
    PLAN_CREATE = "plan.create"
    SESSION_SKIP = "session.skip"
    SESSION_CANCEL = "session.cancel"
    COURSE_CREATE = "course.create"
    COURSE_CHANGE = "course.change"
    ARCHIVE_COLLECT = "archive.collect"
    VOLUME_COLLECT = "volume.collect"


# Of each, beside who, when, and about whom or what.
DATA: Mapping[Code, frozenset[str]] = {
    Code.USER_CREATE: frozenset({"role"}),
    Code.USER_CHANGE: frozenset({"role", "active"}),
    Code.USER_RENAME: frozenset({"old_name", "new_name"}),
    Code.LOGIN_LINK_CREATE: frozenset(),
    Code.LOGIN: frozenset({"session_id"}),
    Code.TOKEN_CREATE: frozenset({"token_id", "scopes"}),
    Code.TOKEN_REVOKE: frozenset({"id"}),
    Code.SESSION_REVOKE: frozenset({"id"}),
    Code.SESSION_STOLEN: frozenset({"session_id"}),
    Code.WORKSPACE_DOWNLOAD: frozenset({"owner", "archive_key"}),
    Code.WORKSPACE_ENTER: frozenset({"owner"}),
    Code.WORKSPACE_DESTROY: frozenset({"why"}),
    Code.PLAN_CREATE: frozenset({"owner"}),
    Code.SESSION_SKIP: frozenset({"owner"}),
    Code.SESSION_CANCEL: frozenset({"owner"}),
    Code.COURSE_CREATE: frozenset({"title"}),
    Code.COURSE_CHANGE: frozenset({"title", "version"}),
    Code.ARCHIVE_COLLECT: frozenset({"rule", "bytes", "orphan_since"}),
    Code.VOLUME_COLLECT: frozenset({"rule", "bytes", "orphan_since"}),
}
