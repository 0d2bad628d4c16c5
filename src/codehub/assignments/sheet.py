"""Progress as a sheet: CSV that spreadsheet programs open as it is meant, in the reader's language. Pure."""

import csv
import io
from datetime import datetime

from codehub.assignments.model import Cell, CellState, Progress
from codehub.i18n.locales import Locale

BYTE_ORDER_MARK = "\ufeff"  # without it Excel does not take the text for UTF-8, and shows Korean as something else
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # a cell that begins so would be computed


def words(cell: Cell, locale: Locale) -> str:
    """One cell: its state, the step where there is one, and failed tries."""
    said = locale.say(f"progress_{cell.state.lower()}")
    if cell.state not in {CellState.IN_PROGRESS, CellState.FAILING} or cell.step_index is None:
        return said
    kind = locale.say(f"progress_kind_{cell.step.lower()}") if cell.step else ""
    where = locale.say("progress_step", n=cell.step_index + 1, total=cell.steps or "?", kind=kind)
    tried = f", {locale.say('progress_tries', n=cell.tries)}" if cell.tries else ""
    return f"{said} ({where}{tried})"


def written(progress: Progress, locale: Locale) -> str:
    out = io.StringIO()
    out.write(BYTE_ORDER_MARK)
    rows = csv.writer(out, lineterminator="\r\n")
    heads = ("name", "display_name", "completed", "total", "last_activity")
    titles = {one.id: one.title for one in progress.assignments}
    several = len(titles) > 1
    named = [f"{titles[c.assignment_id]}: {c.title}" if several else c.title for c in progress.columns]
    rows.writerow([locale.say(f"progress_head_{head}") for head in heads] + [_safe(name) for name in named])
    for one in progress.learners:
        cells = [one.cells.get((c.assignment_id, c.key)) for c in progress.columns]
        seen = _moment(one.last_activity_at, locale)
        about = [_safe(one.name), _safe(one.display_name), one.completed, one.total, seen]
        rows.writerow(about + [words(cell, locale) if cell else "" for cell in cells])
    return out.getvalue()


def _safe(text: str) -> str:
    """Not a formula, whatever a person is called."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def _moment(at: datetime | None, locale: Locale) -> str:
    """In the reader's time zone, as spreadsheet programs take it for a moment."""
    return at.astimezone(locale.zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""
