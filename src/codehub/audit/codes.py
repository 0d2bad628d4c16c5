"""What the audit log can say: codes, with the data that each carries. Sentences are made by `i18n.audit`."""

from collections.abc import Mapping
from enum import StrEnum


class Code(StrEnum):
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"
    USER_RENAME = "user.rename"
    USER_PROFILE = "user.profile"
    USER_REMOVE = "user.remove"
    LOGIN_LINK_CREATE = "login_link.create"
    LOGIN = "login"
    PASSWORD_CHANGE = "password.change"  # noqa: S105 (a name)
    PASSWORD_REMOVE = "password.remove"  # noqa: S105
    PASSKEY_ADD = "passkey.add"
    PASSKEY_RENAME = "passkey.rename"
    PASSKEY_REMOVE = "passkey.remove"
    PASSKEY_BLOCK = "passkey.block"
    TOKEN_CREATE = "token.create"  # noqa: S105 (no password)
    TOKEN_REVOKE = "token.revoke"  # noqa: S105
    LOGIN_REVOKE = "login.revoke"
    LOGIN_REVOKE_OTHERS = "login.revoke_others"
    LOGIN_STOLEN = "login.stolen"
    IDENTITY_LINK = "identity.link"
    IDENTITY_REMOVE = "identity.remove"
    WORKSPACE_DOWNLOAD = "workspace.download"
    WORKSPACE_ENTER = "workspace.enter"
    WORKSPACE_DESTROY = "workspace.destroy"
    WORKSPACE_BULK = "workspace.bulk"
    PLAN_CREATE = "plan.create"
    SESSION_SKIP = "session.skip"
    SESSION_CANCEL = "session.cancel"
    COURSE_CREATE = "course.create"
    COURSE_CHANGE = "course.change"
    COURSE_WITHDRAW = "course.withdraw"
    COURSE_OFFER = "course.offer"
    QUEUE_JOIN_FOR = "queue.join_for"
    QUEUE_GIVE_BACK = "queue.give_back"
    EVENT_CREATE = "event.create"
    EVENT_CHANGE = "event.change"
    CLASS_CREATE = "class.create"
    CLASS_CHANGE = "class.change"
    CLASS_DELETE = "class.delete"
    CLASS_MEMBER_ADD = "class.member_add"
    CLASS_MEMBER_REMOVE = "class.member_remove"
    ASSIGNMENT_CREATE = "assignment.create"
    ASSIGNMENT_END = "assignment.end"
    SCHEDULE_CREATE = "schedule.create"
    SCHEDULE_PAUSE = "schedule.pause"
    SCHEDULE_RESUME = "schedule.resume"
    SCHEDULE_SKIP = "schedule.skip"
    SCHEDULE_UNSKIP = "schedule.unskip"
    SCHEDULE_DELETE = "schedule.delete"
    HAND_RAISE = "hand.raise"
    HAND_LOWER = "hand.lower"
    HAND_ANSWER = "hand.answer"
    INVITATION_CREATE = "invitation.create"
    INVITATION_REVOKE = "invitation.revoke"
    INVITATION_USE = "invitation.use"
    IDE_INSTALL = "ide.install"
    IDE_CANCEL = "ide.cancel"
    ARCHIVE_COLLECT = "archive.collect"
    VOLUME_COLLECT = "volume.collect"
    BACKUP_CREATE = "backup.create"
    BACKUP_CANCEL = "backup.cancel"
    BACKUP_DOWNLOAD = "backup.download"
    BACKUP_DELETE = "backup.delete"


SCHEDULE = frozenset({"id", "weekdays", "time", "time_zone"})
# Older entries have these, from when a session was nothing but a browser's login. They are read as what they mean.
RENAMED: Mapping[str, Code] = {"session.revoke": Code.LOGIN_REVOKE, "session.stolen": Code.LOGIN_STOLEN}
# Of each, beside who, when, and about whom or what.
DATA: Mapping[Code, frozenset[str]] = {
    Code.USER_CREATE: frozenset({"role"}),
    Code.USER_CHANGE: frozenset({"role", "active"}),
    Code.USER_RENAME: frozenset({"old_name", "new_name"}),
    Code.USER_PROFILE: frozenset({"fields"}),
    Code.USER_REMOVE: frozenset(),
    Code.LOGIN_LINK_CREATE: frozenset(),
    Code.LOGIN: frozenset({"session_id", "way"}),
    Code.PASSWORD_CHANGE: frozenset(),
    Code.PASSWORD_REMOVE: frozenset(),
    Code.PASSKEY_ADD: frozenset({"passkey_id", "label"}),
    Code.PASSKEY_RENAME: frozenset({"passkey_id", "label"}),
    Code.PASSKEY_REMOVE: frozenset({"passkey_id", "label"}),
    Code.PASSKEY_BLOCK: frozenset({"passkey_id", "label"}),
    Code.TOKEN_CREATE: frozenset({"token_id", "scopes"}),
    Code.TOKEN_REVOKE: frozenset({"id"}),
    Code.LOGIN_REVOKE: frozenset({"id"}),
    Code.LOGIN_REVOKE_OTHERS: frozenset(),
    Code.LOGIN_STOLEN: frozenset({"session_id"}),
    Code.IDENTITY_LINK: frozenset({"provider"}),
    Code.IDENTITY_REMOVE: frozenset({"provider"}),
    Code.WORKSPACE_DOWNLOAD: frozenset({"owner", "archive_key"}),
    Code.WORKSPACE_ENTER: frozenset({"owner"}),
    Code.WORKSPACE_DESTROY: frozenset({"why"}),
    Code.WORKSPACE_BULK: frozenset({"verb", "count"}),
    Code.PLAN_CREATE: frozenset({"owner"}),
    Code.SESSION_SKIP: frozenset({"owner"}),
    Code.SESSION_CANCEL: frozenset({"owner"}),
    Code.COURSE_CREATE: frozenset({"title"}),
    Code.COURSE_CHANGE: frozenset({"title", "version"}),
    Code.COURSE_WITHDRAW: frozenset({"title"}),
    Code.COURSE_OFFER: frozenset({"title"}),
    Code.QUEUE_JOIN_FOR: frozenset({"waiting"}),
    Code.QUEUE_GIVE_BACK: frozenset(),
    Code.EVENT_CREATE: frozenset({"capacity"}),
    Code.EVENT_CHANGE: frozenset({"fields"}),
    Code.CLASS_CREATE: frozenset({"title"}),
    Code.CLASS_CHANGE: frozenset({"title", "archived"}),
    Code.CLASS_DELETE: frozenset({"title"}),
    Code.CLASS_MEMBER_ADD: frozenset({"user", "role"}),
    Code.CLASS_MEMBER_REMOVE: frozenset({"user"}),
    Code.ASSIGNMENT_CREATE: frozenset({"title", "learners"}),
    Code.ASSIGNMENT_END: frozenset({"title"}),
    Code.SCHEDULE_CREATE: SCHEDULE,
    Code.SCHEDULE_PAUSE: SCHEDULE,
    Code.SCHEDULE_RESUME: SCHEDULE,
    Code.SCHEDULE_SKIP: SCHEDULE,
    Code.SCHEDULE_UNSKIP: SCHEDULE,
    Code.SCHEDULE_DELETE: SCHEDULE,
    Code.HAND_RAISE: frozenset({"run"}),
    Code.HAND_LOWER: frozenset({"run"}),
    Code.HAND_ANSWER: frozenset({"user"}),
    Code.INVITATION_CREATE: frozenset({"id"}),
    Code.INVITATION_REVOKE: frozenset({"id"}),
    Code.INVITATION_USE: frozenset({"id"}),
    Code.IDE_INSTALL: frozenset(),
    Code.IDE_CANCEL: frozenset(),
    Code.ARCHIVE_COLLECT: frozenset({"rule", "bytes", "orphan_since"}),
    Code.VOLUME_COLLECT: frozenset({"rule", "bytes", "orphan_since"}),
    Code.BACKUP_CREATE: frozenset(),
    Code.BACKUP_CANCEL: frozenset({"asked_at"}),
    Code.BACKUP_DOWNLOAD: frozenset({"asked_at"}),
    Code.BACKUP_DELETE: frozenset({"asked_at", "why"}),
}
