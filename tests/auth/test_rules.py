"""The rules about people, sessions and tokens: tables for what they say, Hypothesis for what always holds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codehub.auth import rules
from codehub.auth.model import AccessToken, BrowserSession, Person
from codehub.auth.rules import SessionVerdict as Verdict
from codehub.errors import ForbiddenError, LastAdminError, NotFoundError
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import ALL_SCOPES, Principal, Role, Scope

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROTATE_AFTER = timedelta(hours=1)
READ, WRITE, ADMIN = Scope.READ, Scope.WRITE, Scope.ADMIN


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


def session(
    generation: int = 1,
    confirmed: int = 1,
    *,
    rotated: int = 10,
    used: int = 10,
    seen: int = 10,
    ends: int = 99,
) -> BrowserSession:
    """One that rotated, whose newest cookie was first used, and that was seen so many seconds ago."""
    return BrowserSession(
        id="s",
        user_id="u1",
        generation=generation,
        confirmed=confirmed,
        created_at=ago(100_000),
        rotated_at=ago(rotated),
        confirmed_at=ago(used),
        seen_at=ago(seen),
        expires_at=ago(-ends),
        user_agent="",
        revoked_at=None,
    )


@pytest.mark.parametrize(
    ("state", "cookie", "verdict"),
    [
        pytest.param(session(), 1, Verdict.KEEP, id="in use"),
        pytest.param(session(seen=59), 1, Verdict.KEEP, id="seen a moment ago"),
        pytest.param(session(seen=60), 1, Verdict.TOUCH, id="not seen for a minute"),
        pytest.param(session(rotated=3599), 1, Verdict.KEEP, id="not old enough to rotate"),
        pytest.param(session(rotated=3600), 1, Verdict.ROTATE, id="old enough to rotate"),
        pytest.param(session(2, 1), 2, Verdict.CONFIRM, id="the new cookie arrived"),
        pytest.param(session(2, 1, rotated=9999), 2, Verdict.CONFIRM, id="the new cookie arrived late"),
        pytest.param(session(2, 1), 1, Verdict.REISSUE, id="the new cookie was lost on the way"),
        pytest.param(session(2, 1, rotated=86400), 1, Verdict.REISSUE, id="lost, and a day later"),
        pytest.param(session(2, 2, used=60), 1, Verdict.KEEP, id="a request that was under way with the old cookie"),
        pytest.param(session(2, 2, used=61), 1, Verdict.STOLEN, id="the old cookie after its successor was in use"),
        pytest.param(session(3, 2), 1, Verdict.STOLEN, id="two generations back, the newest unconfirmed"),
        pytest.param(session(3, 3), 1, Verdict.STOLEN, id="two generations back"),
        pytest.param(session(), 2, Verdict.ENDED, id="from a future that a restored backup does not know"),
        pytest.param(session(ends=0), 1, Verdict.ENDED, id="expired this moment"),
        pytest.param(session(2, 2, used=61, ends=0), 1, Verdict.ENDED, id="expired, whatever the cookie"),
        pytest.param(replace(session(), revoked_at=ago(1)), 1, Verdict.ENDED, id="revoked"),
    ],
)
def test_what_a_cookie_means_for_its_session(state: BrowserSession, cookie: int, verdict: Verdict) -> None:
    assert rules.judge_session(state, cookie, NOW, ROTATE_AFTER) is verdict


@st.composite
def sessions(draw: st.DrawFn) -> BrowserSession:
    generation = draw(st.integers(1, 5))
    seconds = st.integers(0, 100_000)
    made = session(
        generation,
        draw(st.integers(max(1, generation - 1), generation)),
        rotated=draw(seconds),
        used=draw(seconds),
        seen=draw(seconds),
        ends=draw(st.integers(-10, 100_000)),
    )
    return replace(made, revoked_at=draw(st.none() | st.just(ago(1))))


@given(sessions(), st.integers(1, 7))
def test_nobody_gets_in_once_a_session_was_revoked_or_expired(state: BrowserSession, cookie: int) -> None:
    assume(state.revoked_at or state.expires_at <= NOW)
    assert rules.judge_session(state, cookie, NOW, ROTATE_AFTER) is Verdict.ENDED


@given(sessions(), st.integers(1, 7))
def test_only_an_older_cookie_can_be_a_stolen_one(state: BrowserSession, cookie: int) -> None:
    if rules.judge_session(state, cookie, NOW, ROTATE_AFTER) is Verdict.STOLEN:
        assert cookie < state.generation


@given(sessions())
def test_a_browser_that_never_got_the_new_cookie_is_never_a_thief(state: BrowserSession) -> None:
    waiting = replace(state, confirmed=state.generation, generation=state.generation + 1, revoked_at=None)
    alive = replace(waiting, expires_at=ago(-1))
    assert rules.judge_session(alive, alive.confirmed, NOW, ROTATE_AFTER) is Verdict.REISSUE


def caller(role: Role, scopes: frozenset[Scope] = ALL_SCOPES, name: str = "mina") -> Principal:
    return Principal(name, role, scopes)


@pytest.mark.parametrize(
    ("maker", "wanted", "owner", "granted"),
    [
        (caller(Role.ADMIN), None, Role.ADMIN, {READ, WRITE, ADMIN}),
        (caller(Role.ADMIN), None, Role.TEACHER, {READ, WRITE}),
        (caller(Role.LEARNER), None, Role.LEARNER, {READ, WRITE}),
        (caller(Role.ADMIN, frozenset({READ, WRITE})), None, Role.ADMIN, {READ, WRITE}),
        (caller(Role.LEARNER), {READ}, Role.LEARNER, {READ}),
        (caller(Role.LEARNER), {ADMIN}, Role.LEARNER, None),
        (caller(Role.ADMIN), {READ, ADMIN}, Role.LEARNER, None),
        (caller(Role.LEARNER, frozenset({WRITE})), {READ}, Role.LEARNER, None),
    ],
)
def test_what_scopes_a_token_gets(
    maker: Principal, wanted: set[Scope] | None, owner: Role, granted: set[Scope] | None
) -> None:
    asked = None if wanted is None else frozenset(wanted)
    if granted is None:
        with pytest.raises(ForbiddenError):
            rules.grantable(maker, asked, owner)
    else:
        assert rules.grantable(maker, asked, owner) == granted


scope_sets = st.frozensets(st.sampled_from(list(Scope)))


@given(scope_sets, st.none() | scope_sets, st.sampled_from(list(Role)), st.sampled_from(list(Role)))
def test_a_token_never_holds_more_than_its_maker_or_its_owner_may(
    held: frozenset[Scope], wanted: frozenset[Scope] | None, maker: Role, owner: Role
) -> None:
    try:
        granted = rules.grantable(caller(maker, held), wanted, owner)
    except ForbiddenError:
        assert wanted
        return
    assert granted <= held
    assert ADMIN not in granted or owner is Role.ADMIN
    assert wanted is None or granted == wanted


def person(role: Role, *, active: bool = True) -> Person:
    return Person("u1", "mina", "", role, None, None, ago(9), None, None if active else ago(1), None)


@pytest.mark.parametrize(
    ("who", "role", "active", "others", "allowed"),
    [
        (person(Role.ADMIN), Role.TEACHER, True, 0, False),
        (person(Role.ADMIN), Role.ADMIN, False, 0, False),
        (person(Role.ADMIN), Role.ADMIN, True, 0, True),
        (person(Role.ADMIN), Role.TEACHER, True, 1, True),
        (person(Role.ADMIN), Role.ADMIN, False, 1, True),
        (person(Role.ADMIN, active=False), Role.LEARNER, False, 0, True),
        (person(Role.LEARNER), Role.TEACHER, True, 0, True),
        (person(Role.LEARNER), Role.LEARNER, False, 0, True),
    ],
)
def test_somebody_stays_admin(who: Person, role: Role, active: bool, others: int, allowed: bool) -> None:
    if allowed:
        rules.check_admin_remains(who, role, active=active, other_admins=others)
    else:
        with pytest.raises(LastAdminError):
            rules.check_admin_remains(who, role, active=active, other_admins=others)


@given(st.sampled_from(list(Role)), st.booleans(), st.sampled_from(list(Role)), st.booleans(), st.integers(0, 3))
def test_no_change_that_is_allowed_takes_the_last_admin_away(
    before: Role, was_active: bool, role: Role, active: bool, others: int
) -> None:
    admins_before = others + (before is Role.ADMIN and was_active)
    assume(admins_before > 0)
    try:
        rules.check_admin_remains(person(before, active=was_active), role, active=active, other_admins=others)
    except LastAdminError:
        return
    assert others + (role is Role.ADMIN and active) > 0


@pytest.mark.parametrize(
    ("scopes", "may_read", "may_write"),
    [({READ}, True, False), ({WRITE}, False, True), ({READ, WRITE}, True, True), ({ADMIN}, False, False)],
)
def test_a_scope_allows_only_what_it_says(scopes: set[Scope], may_read: bool, may_write: bool) -> None:
    for action, allowed in ((Action.WORKSPACE_SEE, may_read), (Action.WORKSPACE_START, may_write)):
        if allowed:
            policy_rules.require_scope(caller(Role.ADMIN, frozenset(scopes)), action)
        else:
            with pytest.raises(ForbiddenError):
                policy_rules.require_scope(caller(Role.ADMIN, frozenset(scopes)), action)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("scopes", [ALL_SCOPES, frozenset({READ, WRITE})])
def test_only_an_admin_with_the_admin_scope_is_one(role: Role, scopes: frozenset[Scope]) -> None:
    if role is Role.ADMIN and ADMIN in scopes:
        policy_rules.require(caller(role, scopes), Action.USER_CREATE)
        policy_rules.require(caller(role, scopes), Action.USER_SEE, policy_rules.account("somebody-else"))
    else:
        with pytest.raises(ForbiddenError):
            policy_rules.require(caller(role, scopes), Action.USER_CREATE)
        with pytest.raises(NotFoundError):
            policy_rules.require(caller(role, scopes), Action.USER_SEE, policy_rules.account("somebody-else"))
    policy_rules.require(caller(role, scopes), Action.USER_SEE, policy_rules.account("mina"))


def token(**fields: datetime | None) -> AccessToken:
    made = AccessToken("t", "mina", "", b"", ["read"], ago(99), "mina", ago(-10), None, None)
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "who", "good"),
    [
        (token(), person(Role.LEARNER), True),
        (token(), person(Role.LEARNER, active=False), False),
        (token(expires_at=NOW), person(Role.LEARNER), False),
        (token(revoked_at=ago(1)), person(Role.LEARNER), False),
    ],
)
def test_when_a_token_is_good(what: AccessToken, who: Person, good: bool) -> None:
    assert rules.token_is_good(what, who, NOW) is good


@pytest.mark.parametrize(("last", "news"), [(None, True), (ago(59), False), (ago(60), True)])
def test_a_tokens_use_is_news_once_a_minute(last: datetime | None, news: bool) -> None:
    assert rules.token_use_is_news(token(last_used_at=last), NOW) is news
