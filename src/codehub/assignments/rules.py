"""The rules about what classes are given. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from codehub.assignments.errors import AssignmentExistsError, AssignmentLimitError
from codehub.assignments.model import Assignment, Cell, CellState, Column, LearnerProgress
from codehub.classes.model import SchoolClass
from codehub.sessions.model import SessionStatus

MOST = 50  # courses of a class at a time: a board is looked at as a whole


def check_same(there: Assignment, starts_on: date | None) -> None:
    """The same again changes nothing; from another day it would, and learners have begun."""
    if starts_on is not None and starts_on != there.starts_on:
        hint = "end that first, or keep its day"
        raise AssignmentExistsError(
            f"the class has {there.title} from {there.starts_on}: {hint}", assignment_id=there.id
        )


def check_count(found: SchoolClass, count: int) -> None:
    if count >= MOST:
        raise AssignmentLimitError(f"{found.title} has {count} courses; {MOST} is the most: end one of them first")


# --- progress

STATES: Mapping[SessionStatus, CellState] = {
    SessionStatus.SCHEDULED: CellState.NOT_STARTED,
    SessionStatus.IN_PROGRESS: CellState.IN_PROGRESS,
    SessionStatus.COMPLETED: CellState.COMPLETED,
    SessionStatus.SKIPPED: CellState.SKIPPED,
    SessionStatus.CANCELED: CellState.CANCELED,
}


def state(status: str, *, failed: bool) -> CellState:
    """`failed`: the step that the running run is at was tried and not passed."""
    found = STATES[SessionStatus(status)]
    return CellState.FAILING if failed and found is CellState.IN_PROGRESS else found


def tries_of(steps: Sequence[str], tries: Mapping[int, int], kind: str) -> int:
    """Failed tries at the steps of one kind."""
    return sum(count for index, count in tries.items() if index < len(steps) and steps[index] == kind)


def learner(user_id: str, name: str, display_name: str, cells: Sequence[Cell]) -> LearnerProgress:
    active = [cell.last_activity_at for cell in cells if cell.last_activity_at]
    return LearnerProgress(
        user_id,
        name,
        display_name,
        cells={(cell.assignment_id, cell.key): cell for cell in cells},
        completed=sum(cell.state is CellState.COMPLETED for cell in cells),
        total=len(cells),
        last_activity_at=max(active, default=None),
    )


def columns(assignments: Sequence[Assignment], learners: Sequence[LearnerProgress]) -> list[Column]:
    """Sessions in the order of their course. One that is canceled for all, as a new version left it out, is not shown.

    Where learners have different versions, the title that most of them have.
    """
    cells = [cell for one in learners for cell in one.cells.values()]
    shown = {(cell.assignment_id, cell.key) for cell in cells if cell.state is not CellState.CANCELED}
    places: dict[tuple[str, str], int] = {}
    titles: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        place = cell.assignment_id, cell.key
        places[place] = min(cell.position, places.get(place, cell.position))
        titles.setdefault(place, Counter())[cell.title] += 1
    order = {assignment.id: number for number, assignment in enumerate(assignments)}
    kept = [place for place in places if place in shown and place[0] in order]
    kept.sort(key=lambda place: (order[place[0]], places[place], place[1]))
    return [Column(*place, title=titles[place].most_common(1)[0][0]) for place in kept]


def urgency(found: LearnerProgress) -> int:
    """Whom a teacher sees first: raised hands, then failing checks; others as they are listed."""
    if any(cell.hand_id for cell in found.cells.values()):
        return 0
    return 1 if any(cell.state is CellState.FAILING for cell in found.cells.values()) else 2
