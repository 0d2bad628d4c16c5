"""What a request gets, row by row as the specification's table has it."""

import pytest

from codehub.gate import rules
from codehub.gate.rules import Outcome
from codehub.workspaces.model import Desired, Operation, Phase

R, S, A = Desired.RUNNING, Desired.STANDBY, Desired.ARCHIVED
NONE = Operation.NONE
TABLE = [
    ("running", Phase.RUNNING, NONE, R, Outcome.FORWARD),
    ("running, and to be stopped soon", Phase.RUNNING, NONE, S, Outcome.FORWARD),
    ("being stopped", Phase.RUNNING, Operation.STOPPING, S, Outcome.ASLEEP),
    ("asleep", Phase.STANDBY, NONE, S, Outcome.ASLEEP),
    ("asleep, a wake asked for", Phase.STANDBY, NONE, R, Outcome.HOLD),
    ("asleep, a wake under way", Phase.STANDBY, Operation.STARTING, R, Outcome.HOLD),
    ("being archived", Phase.STANDBY, Operation.ARCHIVING, A, Outcome.ASLEEP),
    ("archived", Phase.ARCHIVED, NONE, A, Outcome.ARCHIVED),
    ("archived, to be restored", Phase.ARCHIVED, NONE, R, Outcome.HOLD),
    ("being restored", Phase.ARCHIVED, Operation.RESTORING, R, Outcome.HOLD),
    ("never started", Phase.PENDING, NONE, A, Outcome.PENDING),
    ("being made", Phase.PENDING, Operation.PROVISIONING, R, Outcome.HOLD),
    ("in error", Phase.ERROR, NONE, R, Outcome.ERROR),
    ("in error, being deleted", Phase.ERROR, Operation.DELETING, A, Outcome.ERROR),
    ("deleted", Phase.DELETED, NONE, A, Outcome.UNKNOWN),
]


@pytest.mark.parametrize(("_name", "phase", "operation", "desired", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_what_is_not_a_page_gets_what_the_table_says(
    _name: str, phase: Phase, operation: Operation, desired: Desired, expected: Outcome
) -> None:
    running = phase is Phase.RUNNING
    assert rules.outcome(phase, operation, desired, answering=running, wakes=False) is expected


def test_anything_wakes_only_what_sleeps_and_only_where_the_template_says_so() -> None:
    asleep = [row for row in TABLE if row[1] is not Phase.RUNNING]
    woken = [row[0] for row in asleep if rules.outcome(*row[1:4], answering=False, wakes=True) is Outcome.WAKE]
    assert woken == ["asleep"]


def test_nothing_is_forwarded_to_what_has_no_address() -> None:
    for phase in Phase:
        for operation in Operation:
            for desired in Desired:
                found = rules.outcome(phase, operation, desired, answering=False, wakes=False)
                assert found is not Outcome.FORWARD


@pytest.mark.parametrize(
    ("method", "mode", "dest", "accept", "upgrade", "page"),
    [
        (b"GET", b"navigate", b"document", b"text/html", False, True),
        (b"GET", b"navigate", b"iframe", b"text/html", False, True),
        (b"HEAD", b"navigate", b"document", b"", False, True),
        (b"GET", b"", b"", b"text/html,*/*", False, True),  # an old browser, or curl that asks for a page
        (b"GET", b"", b"", b"*/*", False, False),
        (b"GET", b"cors", b"empty", b"text/html", False, False),  # a script may accept what it likes
        (b"GET", b"no-cors", b"image", b"image/*", False, False),
        (b"GET", b"navigate", b"object", b"text/html", False, False),
        (b"POST", b"navigate", b"document", b"text/html", False, False),
        (b"GET", b"websocket", b"", b"", True, False),
        (b"GET", b"", b"", b"text/html", True, False),
    ],
)
def test_only_a_persons_navigation_is_a_page(
    method: bytes, mode: bytes, dest: bytes, accept: bytes, upgrade: bool, page: bool
) -> None:
    assert rules.is_navigation(method, mode, dest, accept, upgrade=upgrade) is page


HOST = b"abc.localhost:8000"


@pytest.mark.parametrize(
    ("origin", "site", "followed", "upgrade", "elsewhere"),
    [
        (b"", b"", False, False, False),  # a program
        (b"", b"none", True, False, False),  # typed
        (b"", b"cross-site", True, False, False),  # a link
        (b"", b"same-origin", False, False, False),
        (b"", b"cross-site", False, False, True),  # a picture or a script on another site's page
        (b"", b"same-site", False, False, True),  # on another workspace's
        (b"http://abc.localhost:8000", b"same-origin", False, False, False),
        (b"http://evil.localhost:8000", b"", False, False, True),
        (b"http://abc.localhost:8001", b"", False, False, True),
        (b"null", b"", False, False, True),
        (b"http://abc.localhost:8000", b"", False, True, False),  # a WebSocket of its own
        (b"", b"", False, True, True),  # a WebSocket that does not say where it comes from
        (b"http://evil.example", b"cross-site", True, False, True),  # a form sent here
    ],
)
def test_another_sites_page_cannot_use_the_visitors_pass(
    origin: bytes, site: bytes, followed: bool, upgrade: bool, elsewhere: bool
) -> None:
    assert rules.comes_from_elsewhere(origin, site, HOST, followed=followed, upgrade=upgrade) is elsewhere
