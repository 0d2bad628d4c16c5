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
    WORKSPACE_DOWNLOAD = "workspace.download"
    WORKSPACE_ARCHIVE = "workspace.archive"
    WORKSPACE_DELETE = "workspace.delete"
    WORKSPACE_PURGE = "workspace.purge"
    WORKSPACE_CREATE = "workspace.create"
    WORKSPACE_CREATE_FOR = "workspace.create-for"
    WORKSPACE_LIST = "workspace.list"
    WORKSPACE_LIST_ALL = "workspace.list-all"
    EVENTS_FOLLOW = "events.follow"
    EVENTS_FOLLOW_ALL = "events.follow-all"
    TEMPLATE_LIST = "template.list"
    USER_SEE = "user.see"
    USER_LIST = "user.list"
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"
    USER_LOOK_UP = "user.look-up"
    LOGIN_LINK_CREATE = "login-link.create"
    TOKEN_LIST = "token.list"  # noqa: S105 (a name)
    TOKEN_CREATE = "token.create"  # noqa: S105
    TOKEN_REVOKE = "token.revoke"  # noqa: S105
    LOGIN_LIST = "login.list"
    LOGIN_REVOKE = "login.revoke"
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
    COURSE_SEE = "course.see"
    COURSE_SOURCE = "course.source"
    COURSE_CHANGE = "course.change"
    COURSE_TAKE = "course.take"
    COURSE_LIST = "course.list"
    COURSE_CREATE = "course.create"
    COURSE_CREATE_FOR = "course.create-for"
    AUDIT_READ = "audit.read"
    LOOPS_READ = "loops.read"
    METRICS_READ = "metrics.read"
    DOCS_READ = "docs.read"
    PUBLIC_HEALTH = "public.health"
    PUBLIC_HOME = "public.home"
    PUBLIC_LOGIN = "public.login"
    PUBLIC_HANDOVER = "public.handover"
    PUBLIC_STATIC = "public.static"


class Subject(Enum):
    """What an action is about, and so what those get who may not: another person's things are not there."""

    WORKSPACE = "a workspace"  # 403 for those who may see it, else 404
    PLAN = "a learner's plan"  # its sessions and runs, too; 403 for those who may see it, else 404
    COURSE = "a course"  # 403
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


def _account(about: str, scope: Scope) -> Rule:
    return Rule(about, Subject.ACCOUNT, scope, {R.OWNER: Cell.YES, R.ADMIN: Cell.YES})


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
    A.WORKSPACE_DOWNLOAD: _workspace("download its files", READ, teacher=TOLD),
    A.WORKSPACE_ARCHIVE: _workspace("store it away", WRITE),
    A.WORKSPACE_DELETE: _workspace("delete it, and take that back", WRITE),
    A.WORKSPACE_PURGE: _workspace("delete it for good", WRITE),
    A.WORKSPACE_CREATE: _platform("make a workspace", WRITE, R.PERSON),
    A.WORKSPACE_CREATE_FOR: _platform("make a workspace for another person", WRITE),
    A.WORKSPACE_LIST: _platform("list their own workspaces, and those shared with them", READ, R.PERSON),
    A.WORKSPACE_LIST_ALL: _platform("list all users' workspaces", READ),
    A.EVENTS_FOLLOW: _platform("follow what changes of theirs", READ, R.PERSON),
    A.EVENTS_FOLLOW_ALL: _platform("follow what changes of all users'", READ),
    A.TEMPLATE_LIST: _platform("see what workspaces can be made from", READ, R.PERSON),
    A.USER_SEE: _account("see an account", READ),
    A.USER_LIST: _platform("list all users", READ),
    A.USER_CREATE: _platform("add a person", WRITE),
    A.USER_CHANGE: _platform("change a person's role, activate and deactivate them", WRITE),
    A.USER_LOOK_UP: _platform("be told whether a person of this name exists", READ, R.STAFF),
    A.LOGIN_LINK_CREATE: _platform("make a login link", WRITE),
    A.TOKEN_LIST: _account("list access tokens", READ),
    A.TOKEN_CREATE: _account("make an access token", WRITE),
    A.TOKEN_REVOKE: _account("revoke an access token", WRITE),
    A.LOGIN_LIST: _account("list the browsers that are logged in", READ),
    A.LOGIN_REVOKE: _account("log a browser out", WRITE),
    A.PLAN_SEE: _plan("see a plan and how far it is", READ, teacher=YES, admin=YES),
    A.PLAN_CREATE: _platform("make a plan", WRITE, R.PERSON),
    A.PLAN_CREATE_FOR: _platform("make a plan for another person", WRITE),
    A.PLAN_LIST: _platform("list their own plans", READ, R.PERSON),
    A.PLAN_LIST_ALL: _platform("list all learners' plans", READ),
    A.SESSION_SEE: _plan("see a session and what is learnt in it", READ, teacher=YES, admin=YES),
    A.SESSION_SKIP: _plan("skip a session", WRITE, admin=YES),
    A.SESSION_CANCEL: _plan("cancel a session", WRITE, admin=YES),
    A.RUN_SEE: _plan("see the runs of a session and what was saved in them", READ, teacher=YES, admin=YES),
    A.RUN_START: _plan("start a session", WRITE),
    A.RUN_WRITE: _plan("go on with a run", WRITE),
    A.RUN_ABANDON: _plan("abandon a run", WRITE),
    A.COURSE_SEE: _course("see what a course is about", READ, R.OWNER, R.PERSON, R.ADMIN),
    A.COURSE_SOURCE: _course("read all of a course, with its answers", READ),
    A.COURSE_CHANGE: _course("change a course", WRITE),
    A.COURSE_TAKE: _course("take a course up", WRITE, R.OWNER, R.PERSON, R.ADMIN),
    A.COURSE_LIST: _platform("list the courses", READ, R.PERSON),
    A.COURSE_CREATE: _platform("make a course", WRITE, R.STAFF),
    A.COURSE_CREATE_FOR: _platform("make a course for another person", WRITE),
    A.AUDIT_READ: _platform("read the audit log", READ),
    A.LOOPS_READ: _platform("see how the background loops are doing", READ),
    A.METRICS_READ: _platform("read the metrics", READ),
    A.DOCS_READ: _platform("read the API's documentation", READ, R.PERSON),
    A.PUBLIC_HEALTH: _public("ask whether the platform is alive and ready"),
    A.PUBLIC_HOME: _public("open the start page"),
    A.PUBLIC_LOGIN: _public("log in by a link, and out"),
    A.PUBLIC_HANDOVER: _public("carry a login to a workspace's origin, which asks for it"),
    A.PUBLIC_STATIC: _public("load the files that pages use"),
}
# What a workspace's scripts can make a browser do: without an origin of its own they would do it to the dashboard.
ENTERING = frozenset({A.WORKSPACE_ENTER, A.WORKSPACE_WORK})
# What was learnt is the learner's own doing: a shell on the machine is no reason to do it in their place.
LEARNERS_OWN = frozenset({A.RUN_START, A.RUN_WRITE, A.RUN_ABANDON})
SYSTEM: Mapping[str, frozenset[Action]] = {
    System.TTL: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_SLEEP, A.WORKSPACE_KEEP_AWAKE, A.WORKSPACE_ARCHIVE}),
    System.WAKE: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_WAKE}),
    System.SESSIONS: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_START, A.WORKSPACE_CREATE_FOR, A.RUN_ABANDON}),
    System.WAITING_ROOM: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_START}),
    System.CONTROLLER: frozenset({A.WORKSPACE_SEE, A.WORKSPACE_PURGE}),
}
