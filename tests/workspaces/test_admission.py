"""May one more run? The rule as a table, and its answer by the API."""

import pytest

from codehub.workspaces.admission import Admitted, Counts, Limits, NoPlace, OwnLimit, Refused, Running, admitted, decide
from codehub.workspaces.errors import RunningLimitError

LAB = (Running("k3jx7q2mzv5d", "Lab"),)
NO_LIMITS, BOTH = Limits(0, 0), Limits(per_user=2, everywhere=10)


@pytest.mark.parametrize(
    ("counts", "limits", "reservation", "line", "expected"),
    [
        (Counts(0, 0), BOTH, False, False, Admitted()),
        (Counts(9, 1), BOTH, False, False, Admitted()),
        (Counts(500, 500), NO_LIMITS, False, False, Admitted()),
        # One's own limit: whatever else there is.
        (Counts(2, 2, LAB), BOTH, False, False, OwnLimit(2, LAB)),
        (Counts(3, 3, LAB), BOTH, False, False, OwnLimit(2, LAB)),
        (Counts(10, 2, LAB), BOTH, True, True, OwnLimit(2, LAB)),
        # All places are taken, or promised.
        (Counts(10, 1, LAB), BOTH, False, False, NoPlace(10, False, LAB)),
        (Counts(11, 0), BOTH, False, False, NoPlace(10, False, ())),
        (Counts(8, 0, reserved=2), BOTH, False, False, NoPlace(10, False, ())),
        (Counts(8, 0, reserved=1), BOTH, False, False, Admitted()),
        # Nobody overtakes the line, also while a place is free; whoever was promised one has it.
        (Counts(3, 0), BOTH, False, True, NoPlace(10, True, ())),
        (Counts(9, 0, reserved=1), BOTH, True, True, Admitted()),
        (Counts(3, 0), Limits(2, 0), False, True, Admitted()),
    ],
)
def test_who_may_run_one_more(
    counts: Counts, limits: Limits, reservation: bool, line: bool, expected: Admitted | Refused
) -> None:
    assert decide(counts, limits, reservation=reservation, line=line) == expected


def test_a_refusal_is_429_with_the_number_what_runs_and_where_to_wait() -> None:
    said = {"limit": 2, "running": [{"id": "k3jx7q2mzv5d", "name": "Lab"}]}
    for refused, more in ((OwnLimit(2, LAB), {}), (NoPlace(2, False, LAB), {"join_url": "/wait/lab"})):
        with pytest.raises(RunningLimitError) as caught:
            admitted(refused)
        assert (caught.value.status, caught.value.code, caught.value.extra) == (429, "RUNNING_LIMIT", said | more)


def test_what_was_admitted_is_what_was_asked_for() -> None:
    assert admitted("a workspace") == "a workspace"
