"""What the start page puts first."""

from datetime import UTC, datetime, timedelta

import pytest

from codehub.web.home_rules import Choice, First, carry_on
from codehub.workspaces.model import Workspace
from tests.web.rows import workspace

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def used(id_: str, minutes: int, *, deleted: bool = False) -> Workspace:
    return workspace(id=id_, last_access_at=NOW - timedelta(minutes=minutes), deleted_at=NOW if deleted else None)


OLD, NEW, GONE = used("old", 90), used("new", 5), used("gone", 1, deleted=True)


@pytest.mark.parametrize(
    ("begun", "planned", "waits", "mine", "expected"),
    [
        (True, True, True, [NEW], Choice(First.SESSION)),
        (True, True, False, [], Choice(First.SESSION)),
        (False, True, True, [NEW], Choice(First.LINE)),
        (False, False, True, [], Choice(First.LINE)),
        (False, True, False, [NEW], Choice(First.SESSION)),
        (False, False, False, [OLD, NEW], Choice(First.WORKSPACE, "new")),
        (False, False, False, [NEW, OLD, GONE], Choice(First.WORKSPACE, "new")),
        (False, False, False, [GONE], Choice(First.NOTHING)),
        (False, False, False, [], Choice(First.NOTHING)),
    ],
)
def test_where_one_was_comes_first_then_the_line_then_what_is_next_then_what_was_used_last(
    begun: bool,
    planned: bool,
    waits: bool,
    mine: list[Workspace],
    expected: Choice,
) -> None:
    assert carry_on(begun=begun, planned=planned, waits=waits, mine=mine) == expected
