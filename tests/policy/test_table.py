"""The table of who may do what, cell by cell, against what the specification says; and its drawing."""

import pathlib
import subprocess
import sys
from dataclasses import replace

import pytest

from codehub.policy import rules
from codehub.policy.actions import SYSTEM, TABLE, Action, Subject
from codehub.policy.model import (
    ALL_SCOPES,
    Decision,
    Effect,
    Kind,
    Principal,
    Relation,
    Resource,
    Role,
    Scope,
    System,
    system,
)

ROOT = pathlib.Path(__file__).parents[2]
MINA = Principal("mina", Role.LEARNER, ALL_SCOPES, session_id="s")
JUN = Principal("jun", Role.LEARNER, ALL_SCOPES, session_id="s")
TEACHER = Principal("kim", Role.TEACHER, ALL_SCOPES, session_id="s")
ADMIN = Principal("boss", Role.ADMIN, ALL_SCOPES, session_id="s")
OPERATOR = Principal("cli:root", Role.ADMIN, ALL_SCOPES, kind=Kind.OPERATOR)
HERS = Resource("w1", "mina")
SHARED, TAUGHT = Resource("w1", "mina", is_guest=True), Resource("w1", "mina", is_taught=True)
WHO = {
    "owner": (MINA, HERS),
    "guest": (JUN, SHARED),
    "teacher": (TEACHER, TAUGHT),
    "admin": (ADMIN, HERS),
    "stranger": (JUN, HERS),
    "other teacher": (TEACHER, HERS),
}
# Y: may; T: may, and the owner is told; F: forbidden; H: not there. All that has an owner, in the order of `WHO`.
CELLS = {
    Action.WORKSPACE_SEE: "YYYYHH",
    Action.WORKSPACE_HISTORY: "YFYYHH",
    Action.WORKSPACE_ENTER: "YYTTHH",
    Action.WORKSPACE_WORK: "YYTTHH",
    Action.WORKSPACE_WAKE: "YYYYHH",
    Action.WORKSPACE_START: "YFYYHH",
    Action.WORKSPACE_SLEEP: "YFYYHH",
    Action.WORKSPACE_KEEP_AWAKE: "YFYYHH",
    Action.WORKSPACE_CHANGE: "YFFYHH",
    Action.WORKSPACE_SHARES: "YFFYHH",
    Action.WORKSPACE_SHARE: "YFFYHH",
    Action.WORKSPACE_LEAVE: "FYFFHH",
    Action.WORKSPACE_POINTS: "YFFYHH",
    Action.WORKSPACE_RESTORE: "YFFYHH",
    Action.WORKSPACE_RECOVER: "YFFYHH",
    Action.WORKSPACE_FETCH: "YFFYHH",
    Action.WORKSPACE_DOWNLOAD: "YFTYHH",
    Action.WORKSPACE_ARCHIVE: "YFFYHH",
    Action.WORKSPACE_DELETE: "YFFYHH",
    Action.WORKSPACE_PURGE: "YFFYHH",
    Action.PLAN_SEE: "YHYYHH",
    Action.SESSION_SEE: "YHYYHH",
    Action.SESSION_SKIP: "YHFYHH",
    Action.SESSION_CANCEL: "YHFYHH",
    Action.RUN_SEE: "YHYYHH",
    Action.RUN_START: "YHFFHH",
    Action.RUN_WRITE: "YHFFHH",
    Action.RUN_ABANDON: "YHFFHH",
    Action.RUN_HELP: "YHFFHH",
    Action.COURSE_SEE: "YYYYYY",
    Action.COURSE_SOURCE: "YFFYFF",
    Action.COURSE_CHANGE: "YFFYFF",
    Action.COURSE_WITHDRAW: "YFFYFF",
    Action.COURSE_TAKE: "YYYYYY",
    Action.EVENT_SEE: "YYYYYY",
    Action.EVENT_LINE: "YFFYFF",
    Action.EVENT_CHANGE: "YFFYFF",
}
# Of a class: its teacher, a learner of it, an admin, a learner and a teacher of another.
CLASS = Resource("c1")
IN_CLASS = (
    (TEACHER, replace(CLASS, is_taught=True, is_member=True)),
    (MINA, replace(CLASS, is_member=True)),
    (ADMIN, CLASS),
    (JUN, CLASS),
    (TEACHER, CLASS),
)
CLASSES = {
    Action.CLASS_SEE: "YYYHH",
    Action.CLASS_MEMBERS: "YFYHH",
    Action.CLASS_MANAGE: "YFYHH",
    Action.CLASS_CHANGE: "YFYHH",
    Action.CLASS_ASSIGN: "YFYHH",
    Action.CLASS_SCHEDULES: "YFYHH",
    Action.CLASS_SCHEDULE: "YFYHH",
    Action.CLASS_PROGRESS: "YFYHH",
    Action.CLASS_ANSWER: "YFYHH",
    Action.CLASS_INVITATIONS: "YFYHH",
    Action.CLASS_INVITE: "YFYHH",
}
# Of the platform and of accounts: themselves (or a learner), another learner, a teacher, an admin.
ADMINS_ONLY, EVERYBODY, OWN = "FFFY", "YYYY", "YHHY"
OTHERS = {
    Action.WORKSPACE_CREATE: EVERYBODY,
    Action.WORKSPACE_CREATE_FOR: ADMINS_ONLY,
    Action.WORKSPACE_LIST: EVERYBODY,
    Action.WORKSPACE_LIST_ALL: ADMINS_ONLY,
    Action.WORKSPACE_BULK: ADMINS_ONLY,
    Action.EVENTS_FOLLOW: EVERYBODY,
    Action.EVENTS_FOLLOW_ALL: ADMINS_ONLY,
    Action.TEMPLATE_LIST: EVERYBODY,
    Action.USER_SEE: OWN,
    Action.USER_LIST: ADMINS_ONLY,
    Action.USER_CREATE: ADMINS_ONLY,
    Action.USER_CHANGE: ADMINS_ONLY,
    Action.USER_PROFILE: OWN,
    Action.USER_REMOVE: ADMINS_ONLY,
    Action.USER_LOOK_UP: "FFYY",
    Action.LOGIN_LINK_CREATE: OWN,
    Action.PASSWORD_CHANGE: OWN,
    Action.TOKEN_LIST: OWN,
    Action.TOKEN_CREATE: OWN,
    Action.TOKEN_REVOKE: OWN,
    Action.PASSKEY_LIST: OWN,
    Action.PASSKEY_ADD: "YHHH",
    Action.PASSKEY_RENAME: OWN,
    Action.PASSKEY_REMOVE: OWN,
    Action.LOGIN_LIST: OWN,
    Action.LOGIN_REVOKE: OWN,
    Action.IDENTITY_LIST: OWN,
    Action.IDENTITY_LINK: "YHHH",
    Action.IDENTITY_REMOVE: OWN,
    Action.PLAN_CREATE: EVERYBODY,
    Action.PLAN_CREATE_FOR: ADMINS_ONLY,
    Action.PLAN_LIST: EVERYBODY,
    Action.PLAN_LIST_ALL: ADMINS_ONLY,
    Action.COURSE_LIST: EVERYBODY,
    Action.COURSE_LIST_WITHDRAWN: ADMINS_ONLY,
    Action.COURSE_CREATE: "FFYY",
    Action.COURSE_CREATE_FOR: ADMINS_ONLY,
    Action.CLASS_CREATE: "FFYY",
    Action.CLASS_JOIN: EVERYBODY,
    Action.CLASS_LIST: EVERYBODY,
    Action.CLASS_LIST_ALL: ADMINS_ONLY,
    Action.QUEUE_JOIN: EVERYBODY,
    Action.QUEUE_JOIN_FOR: ADMINS_ONLY,
    Action.QUEUE_PLACE: EVERYBODY,
    Action.QUEUE_GIVE_BACK: EVERYBODY,
    Action.EVENT_CREATE: "FFYY",
    Action.EVENT_LIST: EVERYBODY,
    Action.AUDIT_READ: ADMINS_ONLY,
    Action.SETTINGS_READ: ADMINS_ONLY,
    Action.IDE_INSTALL: ADMINS_ONLY,
    Action.STORAGE_PREVIEW: ADMINS_ONLY,
    Action.BACKUP_LIST: ADMINS_ONLY,
    Action.BACKUP_MAKE: ADMINS_ONLY,
    Action.BACKUP_DOWNLOAD: ADMINS_ONLY,
    Action.LOOPS_READ: ADMINS_ONLY,
    Action.METRICS_READ: ADMINS_ONLY,
    Action.MONITORING_READ: ADMINS_ONLY,
    Action.TTL_WHAT_IF: ADMINS_ONLY,
    Action.DOCS_READ: EVERYBODY,
}


def letter(decision: Decision) -> str:
    if decision.allowed:
        return "T" if decision.tells_owner else "Y"
    return "H" if decision.effect is Effect.HIDE else "F"


def test_every_action_stands_in_the_table_and_in_this_test() -> None:
    public = {action for action, rule in TABLE.items() if rule.subject is Subject.PUBLIC}
    assert set(TABLE) == set(Action) == {*CELLS, *CLASSES, *OTHERS, *public}


@pytest.mark.parametrize("action", CLASSES)
def test_a_class_is_its_teachers_and_for_others_it_is_not_there(action: Action) -> None:
    assert "".join(letter(rules.decide(who, action, what)) for who, what in IN_CLASS) == CLASSES[action]


def test_whom_a_principal_teaches_is_theirs_to_help() -> None:
    kim = replace(TEACHER, teaches=frozenset({"mina"}))
    assert letter(rules.decide(kim, Action.WORKSPACE_ENTER, HERS)) == "T"
    assert letter(rules.decide(kim, Action.PLAN_SEE, HERS)) == "Y"
    assert letter(rules.decide(kim, Action.PLAN_SEE, Resource("w2", "jun"))) == "H"


@pytest.mark.parametrize("action", CELLS)
def test_the_cells_of_a_workspace_a_plan_and_a_course_are_those_of_the_specification(action: Action) -> None:
    assert "".join(letter(rules.decide(who, action, what)) for who, what in WHO.values()) == CELLS[action]


@pytest.mark.parametrize("action", OTHERS)
def test_what_is_the_platforms_or_an_accounts(action: Action) -> None:
    resource = rules.account("mina") if TABLE[action].subject is Subject.ACCOUNT else Resource()
    found = "".join(letter(rules.decide(who, action, resource)) for who in (MINA, JUN, TEACHER, ADMIN))
    assert found == OTHERS[action]


@pytest.mark.parametrize("action", list(Action))
def test_without_a_login_only_what_is_public_and_with_a_shell_all_but_learning_for_others(action: Action) -> None:
    assert rules.allows(None, action) == (TABLE[action].subject is Subject.PUBLIC)
    learning = action in {Action.RUN_START, Action.RUN_WRITE, Action.RUN_ABANDON, Action.RUN_HELP}
    assert letter(rules.decide(OPERATOR, action, HERS)) == ("F" if learning else "Y")
    if TABLE[action].subject is not Subject.PUBLIC and not learning:
        assert rules.decide(OPERATOR, action, HERS).relation is Relation.OPERATOR


@pytest.mark.parametrize("name", list(System))
def test_a_part_of_the_platform_may_do_its_few_things_with_any_workspace(name: System) -> None:
    may = {a for a in Action if rules.allows(system(name), a, HERS) and TABLE[a].subject is not Subject.PUBLIC}
    assert may == SYSTEM[name]
    assert len(may) <= 4
    refused = rules.decide(system(name), Action.WORKSPACE_SHARE, HERS)
    assert refused == Decision(Effect.FORBID, f"{name} may not share it, and end that")


@pytest.mark.parametrize("action", [a for a in Action if TABLE[a].subject is not Subject.PUBLIC])
@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_needs_the_actions_scope_whoever_it_belongs_to(action: Action, scope: Scope) -> None:
    for who in (MINA, ADMIN):
        token = Principal(who.name, who.role, frozenset({scope}), token_id="t")
        resource = Resource("w1", who.name)
        if TABLE[action].scope is not scope:
            decision = rules.decide(token, action, resource)
            assert decision == Decision(Effect.FORBID, f"this token lacks the scope `{TABLE[action].scope}`")


def test_an_admins_token_without_the_admin_scope_is_nobodys_admin() -> None:
    token = Principal("boss", Role.ADMIN, frozenset({Scope.READ, Scope.WRITE}), token_id="t")
    assert letter(rules.decide(token, Action.WORKSPACE_SEE, HERS)) == "H"
    assert letter(rules.decide(token, Action.USER_LIST)) == "F"


@pytest.mark.parametrize("action", [Action.WORKSPACE_ENTER, Action.WORKSPACE_WORK])
def test_without_an_origin_of_its_own_only_owners_enter_and_no_admin_with_a_browser(action: Action) -> None:
    here = Resource("w1", "mina", is_guest=True, is_taught=True, is_isolated=False)
    assert [rules.allows(who, action, here) for who in (MINA, JUN, TEACHER, ADMIN)] == [True, False, False, False]
    bosss = Resource("w2", "boss", is_isolated=False)
    assert rules.decide(ADMIN, action, bosss) == Decision(Effect.FORBID, rules.SHARED_ORIGIN)
    program = Principal("boss", Role.ADMIN, ALL_SCOPES, token_id="t")  # has no dashboard that scripts could act on
    assert rules.allows(program, action, bosss)


def test_who_is_told_of_enters_with_a_browser_only() -> None:
    program = Principal("boss", Role.ADMIN, ALL_SCOPES, token_id="t")
    assert rules.decide(program, Action.WORKSPACE_ENTER, HERS) == Decision(Effect.FORBID, rules.NOT_BY_TOKEN)
    assert rules.allows(program, Action.WORKSPACE_START, HERS)


def test_an_admin_who_was_invited_comes_as_a_guest() -> None:
    assert letter(rules.decide(ADMIN, Action.WORKSPACE_ENTER, SHARED)) == "Y"
    assert rules.decide(ADMIN, Action.WORKSPACE_START, SHARED).relation is Relation.ADMIN


@pytest.mark.parametrize("action", list(CELLS))
def test_a_pass_is_good_for_one_workspace(action: Action) -> None:
    holder = Principal("boss", Role.ADMIN, ALL_SCOPES, session_id="s", workspace_id="w1")
    assert letter(rules.decide(holder, action, HERS)) == letter(rules.decide(ADMIN, action, HERS))
    assert letter(rules.decide(holder, action, Resource("w2", "boss"))) == "H"
    assert letter(rules.decide(holder, Action.USER_LIST)) == "H"


def test_the_drawn_table_is_that_of_the_code() -> None:
    check = subprocess.run([sys.executable, str(ROOT / "scripts" / "draw-policy"), "--check"], check=False)
    assert check.returncode == 0, "run `make policy`"
