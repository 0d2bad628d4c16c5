"""The table of who may do what: every action, and what each relation to its resource gets. Data; `rules` reads it.

`make policy` draws docs/policy.md from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from codehub.policy.model import Relation, Scope, System

R = Relation


class Action(StrEnum):
    """What a route, a page's form or a service asks about, by name."""

    WORKSPACE_SEE = "workspace.see"
    WORKSPACE_HISTORY = "workspace.history"
    WORKSPACE_ENTER = "workspace.enter"
    WORKSPACE_WORK = "workspace.work"
    WORKSPACE_WAKE = "workspace.wake"
    WORKSPACE_START = "workspace.start"
    WORKSPACE_SLEEP = "workspace.sleep"
    WORKSPACE_KEEP_AWAKE = "workspace.keep-awake"
    WORKSPACE_CHANGE = "workspace.change"
    WORKSPACE_SHARES = "workspace.shares"
    WORKSPACE_SHARE = "workspace.share"
    WORKSPACE_LEAVE = "workspace.leave"
    WORKSPACE_POINTS = "workspace.points"
    WORKSPACE_RESTORE = "workspace.restore"
    WORKSPACE_RECOVER = "workspace.recover"
    WORKSPACE_FETCH = "workspace.fetch"
    WORKSPACE_DOWNLOAD = "workspace.download"
    WORKSPACE_ARCHIVE = "workspace.archive"
    WORKSPACE_DELETE = "workspace.delete"
    WORKSPACE_PURGE = "workspace.purge"
    WORKSPACE_CREATE = "workspace.create"
    WORKSPACE_CREATE_FOR = "workspace.create-for"
    WORKSPACE_LIST = "workspace.list"
    WORKSPACE_LIST_ALL = "workspace.list-all"
    WORKSPACE_BULK = "workspace.bulk"
    EVENTS_FOLLOW = "events.follow"
    EVENTS_FOLLOW_ALL = "events.follow-all"
    TEMPLATE_LIST = "template.list"
    USER_SEE = "user.see"
    USER_LIST = "user.list"
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"
    USER_PROFILE = "user.profile"
    USER_REMOVE = "user.remove"
    USER_LOOK_UP = "user.look-up"
    LOGIN_LINK_CREATE = "login-link.create"
    PASSWORD_CHANGE = "password.change"  # noqa: S105 (a name)
    TOKEN_LIST = "token.list"  # noqa: S105 (a name)
    TOKEN_CREATE = "token.create"  # noqa: S105
    TOKEN_REVOKE = "token.revoke"  # noqa: S105
    PASSKEY_LIST = "passkey.list"
    PASSKEY_ADD = "passkey.add"
    PASSKEY_RENAME = "passkey.rename"
    PASSKEY_REMOVE = "passkey.remove"
    LOGIN_LIST = "login.list"
    LOGIN_REVOKE = "login.revoke"
    IDENTITY_LIST = "identity.list"
    IDENTITY_LINK = "identity.link"
    IDENTITY_REMOVE = "identity.remove"
    PLAN_SEE = "plan.see"
    PLAN_CREATE = "plan.create"
    PLAN_CREATE_FOR = "plan.create-for"
    PLAN_LIST = "plan.list"
    PLAN_LIST_ALL = "plan.list-all"
    SESSION_SEE = "session.see"
    SESSION_SKIP = "session.skip"
    SESSION_CANCEL = "session.cancel"
    RUN_SEE = "run.see"
    RUN_START = "run.start"
    RUN_WRITE = "run.write"
    RUN_ABANDON = "run.abandon"
    RUN_HELP = "run.help"
    COURSE_SEE = "course.see"
    COURSE_SOURCE = "course.source"
    COURSE_CHANGE = "course.change"
    COURSE_WITHDRAW = "course.withdraw"
    COURSE_TAKE = "course.take"
    COURSE_LIST = "course.list"
    COURSE_LIST_WITHDRAWN = "course.list-withdrawn"
    COURSE_CREATE = "course.create"
    COURSE_CREATE_FOR = "course.create-for"
    CLASS_SEE = "class.see"
    CLASS_MEMBERS = "class.members"
    CLASS_MANAGE = "class.manage"
    CLASS_CHANGE = "class.change"
    CLASS_ASSIGN = "class.assign"
    CLASS_SCHEDULES = "class.schedules"
    CLASS_SCHEDULE = "class.schedule"
    CLASS_PROGRESS = "class.progress"
    CLASS_ANSWER = "class.answer"
    CLASS_INVITATIONS = "class.invitations"
    CLASS_INVITE = "class.invite"
    CLASS_JOIN = "class.join"
    CLASS_CREATE = "class.create"
    CLASS_LIST = "class.list"
    CLASS_LIST_ALL = "class.list-all"
    QUEUE_JOIN = "queue.join"
    QUEUE_JOIN_FOR = "queue.join-for"
    QUEUE_PLACE = "queue.place"
    QUEUE_GIVE_BACK = "queue.give-back"
    EVENT_SEE = "event.see"
    EVENT_LINE = "event.line"
    EVENT_CHANGE = "event.change"
    EVENT_CREATE = "event.create"
    EVENT_LIST = "event.list"
    AUDIT_READ = "audit.read"
    SETTINGS_READ = "settings.read"
    IDE_INSTALL = "ide.install"
    STORAGE_PREVIEW = "storage.preview"
    BACKUP_LIST = "backup.list"
    BACKUP_MAKE = "backup.make"
    BACKUP_DOWNLOAD = "backup.download"
    LOOPS_READ = "loops.read"
    METRICS_READ = "metrics.read"
    MONITORING_READ = "monitoring.read"
    TTL_WHAT_IF = "ttl.what-if"
    DOCS_READ = "docs.read"
    PUBLIC_HEALTH = "public.health"
    PUBLIC_HOME = "public.home"
    PUBLIC_LOGIN = "public.login"
    PUBLIC_JOIN = "public.join"
    PUBLIC_HANDOVER = "public.handover"
    PUBLIC_STATIC = "public.static"
    PUBLIC_QUEUE = "public.queue"


class Subject(Enum):
    """What an action is about, and so what those get who may not: another person's things are not there."""

    WORKSPACE = "a workspace"  # 403 for those who may see it, else 404
    PLAN = "a learner's plan"  # its sessions and runs, too; 403 for those who may see it, else 404
    COURSE = "a course"  # 403
    CLASS = "a class"  # 403 for those who may see it, else 404
    EVENT = "an event that people wait for"  # 403
    ACCOUNT = "a person's account"  # 404
    PLATFORM = "the platform"  # 403
    PUBLIC = "public"  # also without a login


class Cell(Enum):
    YES = "✓"
    TOLD = "✓, and the owner is told"


@dataclass(frozen=True)
class Rule:
    about: str  # completes "may": for the documentation and for the principal who is refused
    subject: Subject
    scope: Scope = Scope.READ  # what a credential needs
    cells: Mapping[Relation, Cell] = field(default_factory=dict)


def _workspace(about: str, scope: Scope, **cells: Cell) -> Rule:
    """The owner may do everything with their own, and an admin unless it says otherwise."""
    given = {R(name): cell for name, cell in cells.items()}
    return Rule(about, Subject.WORKSPACE, scope, {R.OWNER: Cell.YES, R.ADMIN: Cell.YES, **given})


def _plan(about: str, scope: Scope, **cells: Cell) -> Rule:
    """What is learnt is the learner's own: others read, as far as it says so."""
    return Rule(about, Subject.PLAN, scope, {R.OWNER: Cell.YES, **{R(name): cell for name, cell in cells.items()}})


def _course(about: str, scope: Scope, *relations: Relation) -> Rule:
    return Rule(about, Subject.COURSE, scope, dict.fromkeys(relations or (R.OWNER, R.ADMIN), Cell.YES))


def _class(about: str, scope: Scope, *more: Relation) -> Rule:
    """Its teachers' and admins'."""
    return Rule(about, Subject.CLASS, scope, dict.fromkeys((R.TEACHER, R.ADMIN, *more), Cell.YES))


def _event(about: str, scope: Scope, *relations: Relation) -> Rule:
    return Rule(about, Subject.EVENT, scope, dict.fromkeys(relations or (R.OWNER, R.ADMIN), Cell.YES))


def _account(about: str, scope: Scope, *more: Relation) -> Rule:
    return Rule(about, Subject.ACCOUNT, scope, dict.fromkeys((R.OWNER, R.ADMIN, *more), Cell.YES))


def _platform(about: str, scope: Scope, *relations: Relation) -> Rule:
    return Rule(about, Subject.PLATFORM, scope, dict.fromkeys(relations or (R.ADMIN,), Cell.YES))


def _public(about: str) -> Rule:
    return Rule(about, Subject.PUBLIC)


YES, TOLD = Cell.YES, Cell.TOLD
READ, WRITE = Scope.READ, Scope.WRITE
A = Action
TABLE: Mapping[Action, Rule] = {
    A.WORKSPACE_SEE: _workspace("see it and how it is doing", READ, guest=YES, teacher=YES),
    A.WORKSPACE_HISTORY: _workspace("read its history, its log and why it sleeps", READ, teacher=YES),
    A.WORKSPACE_ENTER: _workspace("enter it", READ, guest=YES, teacher=TOLD, admin=TOLD),
    A.WORKSPACE_WORK: _workspace("send something to its IDE", WRITE, guest=YES, teacher=TOLD, admin=TOLD),
    A.WORKSPACE_WAKE: _workspace("wake it by coming", WRITE, guest=YES, teacher=YES),
    A.WORKSPACE_START: _workspace("start it", WRITE, teacher=YES),
    A.WORKSPACE_SLEEP: _workspace("put it to sleep", WRITE, teacher=YES),
    A.WORKSPACE_KEEP_AWAKE: _workspace("keep it awake", WRITE, teacher=YES),
    A.WORKSPACE_CHANGE: _workspace("rename it and set its times", WRITE),
    A.WORKSPACE_SHARES: _workspace("see with whom it is shared", READ),
    A.WORKSPACE_SHARE: _workspace("share it, and end that", WRITE),
    A.WORKSPACE_LEAVE: Rule("leave what was shared with them", Subject.WORKSPACE, WRITE, {R.GUEST: YES}),
    A.WORKSPACE_POINTS: _workspace("see its restore points", READ),
    A.WORKSPACE_RESTORE: _workspace("go back to a restore point", WRITE),
    A.WORKSPACE_RECOVER: _workspace("recover it from an error", WRITE),
    A.WORKSPACE_FETCH: _workspace("fetch its git repository again", WRITE),
    A.WORKSPACE_DOWNLOAD: _workspace("download its files", READ, teacher=TOLD),
    A.WORKSPACE_ARCHIVE: _workspace("store it away", WRITE),
    A.WORKSPACE_DELETE: _workspace("delete it, and take that back", WRITE),
    A.WORKSPACE_PURGE: _workspace("delete it for good", WRITE),
    A.WORKSPACE_CREATE: _platform("make a workspace", WRITE, R.PERSON),
    A.WORKSPACE_CREATE_FOR: _platform("make a workspace for another person", WRITE),
    A.WORKSPACE_LIST: _platform("list their own workspaces, and those shared with them", READ, R.PERSON),
    A.WORKSPACE_LIST_ALL: _platform("list all users' workspaces", READ),
    A.WORKSPACE_BULK: _platform("ask something of many workspaces at once", WRITE),
    A.EVENTS_FOLLOW: _platform("follow what changes of theirs", READ, R.PERSON),
    A.EVENTS_FOLLOW_ALL: _platform("follow what changes of all users'", READ),
    A.TEMPLATE_LIST: _platform("see what workspaces can be made from", READ, R.PERSON),
    A.USER_SEE: _account("see an account", READ),
    A.USER_LIST: _platform("list all users", READ),
    A.USER_CREATE: _platform("add a person", WRITE),
    A.USER_CHANGE: _platform("change a person's role, activate and deactivate them", WRITE),
    A.USER_PROFILE: _account("say what a person is called, their language and time zone", WRITE, R.MANAGER),
    A.USER_REMOVE: _platform("remove a person", WRITE),
    A.USER_LOOK_UP: _platform("be told whether a person of this name exists", READ, R.STAFF),
    A.LOGIN_LINK_CREATE: _account("make a login link", WRITE, R.MANAGER),
    A.PASSWORD_CHANGE: _account("set a password, and remove it", WRITE, R.MANAGER),
    A.TOKEN_LIST: _account("list access tokens", READ),
    A.TOKEN_CREATE: _account("make an access token", WRITE),
    A.TOKEN_REVOKE: _account("revoke an access token", WRITE),
    A.PASSKEY_LIST: _account("list passkeys", READ),
    A.PASSKEY_ADD: Rule("add a passkey", Subject.ACCOUNT, WRITE, {R.OWNER: YES}),
    A.PASSKEY_RENAME: _account("rename a passkey", WRITE),
    A.PASSKEY_REMOVE: _account("remove a passkey", WRITE),
    A.LOGIN_LIST: _account("list the browsers that are logged in", READ),
    A.LOGIN_REVOKE: _account("log a browser out", WRITE),
    A.IDENTITY_LIST: _account("list the logins of providers that are linked", READ),
    A.IDENTITY_LINK: Rule("link a provider's login with their account", Subject.ACCOUNT, WRITE, {R.OWNER: YES}),
    A.IDENTITY_REMOVE: _account("unlink a provider's login", WRITE),
    A.PLAN_SEE: _plan("see a plan and how far it is", READ, teacher=YES, admin=YES),
    A.PLAN_CREATE: _platform("make a plan", WRITE, R.PERSON),
    A.PLAN_CREATE_FOR: _platform("make a plan for another person", WRITE, R.TEACHER, R.ADMIN),
    A.PLAN_LIST: _platform("list their own plans", READ, R.PERSON),
    A.PLAN_LIST_ALL: _platform("list all learners' plans", READ),
    A.SESSION_SEE: _plan("see a session and what is learnt in it", READ, teacher=YES, admin=YES),
    A.SESSION_SKIP: _plan("skip a session", WRITE, admin=YES),
    A.SESSION_CANCEL: _plan("cancel a session", WRITE, admin=YES),
    A.RUN_SEE: _plan("see the runs of a session and what was saved in them", READ, teacher=YES, admin=YES),
    A.RUN_START: _plan("start a session", WRITE),
    A.RUN_WRITE: _plan("go on with a run", WRITE),
    A.RUN_ABANDON: _plan("abandon a run", WRITE),
    A.RUN_HELP: _plan("ask for help in a run", WRITE),
    A.COURSE_SEE: _course("see what a course is about", READ, R.OWNER, R.PERSON, R.ADMIN),
    A.COURSE_SOURCE: _course("read all of a course, with its answers", READ),
    A.COURSE_CHANGE: _course("change a course", WRITE),
    A.COURSE_WITHDRAW: _course("withdraw a course, and offer it again", WRITE),
    A.COURSE_TAKE: _course("take a course up", WRITE, R.OWNER, R.PERSON, R.ADMIN),
    A.COURSE_LIST: _platform("list the courses", READ, R.PERSON),
    A.COURSE_LIST_WITHDRAWN: _platform("list the courses that others have withdrawn", READ),
    A.COURSE_CREATE: _platform("make a course", WRITE, R.STAFF),
    A.COURSE_CREATE_FOR: _platform("make a course for another person", WRITE),
    A.CLASS_SEE: _class("see a class, and who teaches it", READ, R.MEMBER),
    A.CLASS_MEMBERS: _class("see who is in a class", READ),
    A.CLASS_MANAGE: _class("add people to a class, and take them out", WRITE),
    A.CLASS_CHANGE: _class("rename a class, archive and delete it", WRITE),
    A.CLASS_ASSIGN: _class("give a class a course, and end that", WRITE),
    A.CLASS_SCHEDULES: _class("see before which lessons a class's workspaces are started", READ),
    A.CLASS_SCHEDULE: _class("have a class's workspaces started before its lessons, and end that", WRITE),
    A.CLASS_PROGRESS: _class("see how far a class's learners are, and who asks for help", READ),
    A.CLASS_ANSWER: _class("answer a learner who asks for help", WRITE),
    A.CLASS_INVITATIONS: _class("see the invitations of a class", READ),
    A.CLASS_INVITE: _class("invite people to a class, and end that", WRITE),
    A.CLASS_JOIN: _platform("join a class by an invitation", WRITE, R.PERSON),
    A.CLASS_CREATE: _platform("make a class", WRITE, R.STAFF),
    A.CLASS_LIST: _platform("list the classes that they teach or attend", READ, R.PERSON),
    A.CLASS_LIST_ALL: _platform("list all classes", READ),
    A.QUEUE_JOIN: _platform("wait in line for an event", WRITE, R.PERSON),
    A.QUEUE_JOIN_FOR: _platform("put another person in line", WRITE),
    A.QUEUE_PLACE: _platform("see the place that they have at an event", READ, R.PERSON),
    A.QUEUE_GIVE_BACK: _platform("give their place at an event back", WRITE, R.PERSON),
    A.EVENT_SEE: _event("see how many wait for an event", READ, R.OWNER, R.PERSON, R.ADMIN),
    A.EVENT_LINE: _event("see who waits for an event", READ),
    A.EVENT_CHANGE: _event("change an event, pause it, open it", WRITE),
    A.EVENT_CREATE: _platform("make an event that people wait for", WRITE, R.STAFF),
    A.EVENT_LIST: _platform("list the events that people wait for", READ, R.PERSON),
    A.AUDIT_READ: _platform("read the audit log", READ),
    A.SETTINGS_READ: _platform("see the settings in force, the limits and the files of templates", READ),
    A.IDE_INSTALL: _platform("install an IDE on the machine, and end that", WRITE),
    A.LOOPS_READ: _platform("see how the background loops are doing", READ),
    A.STORAGE_PREVIEW: _platform("see what the garbage collection would remove", READ),
    A.BACKUP_LIST: _platform("see which backups there are, and how far one is", READ),
    A.BACKUP_MAKE: _platform("have a backup made, cancel it and delete one", WRITE),
    A.BACKUP_DOWNLOAD: _platform("download a backup, which holds everything, keys too", WRITE),
    A.METRICS_READ: _platform("read the metrics", READ),
    A.MONITORING_READ: _platform("see the platform's figures over time", READ),
    A.TTL_WHAT_IF: _platform("ask what other times to sleep would have done", READ),
    A.DOCS_READ: _platform("read the API's documentation", READ, R.PERSON),
    A.PUBLIC_HEALTH: _public("ask whether the platform is alive and ready"),
    A.PUBLIC_HOME: _public("open the start page"),
    A.PUBLIC_LOGIN: _public("log in, and out"),
    A.PUBLIC_JOIN: _public("follow an invitation to a class, as a new person"),
    A.PUBLIC_HANDOVER: _public("carry a login to a workspace's origin, which asks for it"),
    A.PUBLIC_STATIC: _public("load the files that pages use"),
    A.PUBLIC_QUEUE: _public("ask for their position, enter and leave with a waiting token"),
}
# What a workspace's scripts can make a browser do: without an origin of its own they would do it to the dashboard.
ENTERING = frozenset({A.WORKSPACE_ENTER, A.WORKSPACE_WORK})
# What was learnt is the learner's own doing: a shell on the machine is no reason to do it in their place.
LEARNERS_OWN = frozenset({A.RUN_START, A.RUN_WRITE, A.RUN_ABANDON, A.RUN_HELP})
SYSTEM: Mapping[str, frozenset[Action]] = {
    System.TTL: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_SLEEP, A.WORKSPACE_KEEP_AWAKE, A.WORKSPACE_ARCHIVE}),
    System.WAKE: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_WAKE}),
    System.SESSIONS: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_START, A.WORKSPACE_CREATE_FOR, A.RUN_ABANDON}),
    System.WAITING_ROOM: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_START}),
    System.CONTROLLER: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_PURGE}),
    System.SCHEDULES: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_START}),
    System.OPENID: frozenset({A.USER_CREATE, A.USER_CHANGE, A.CLASS_SEE, A.CLASS_MANAGE}),
}
