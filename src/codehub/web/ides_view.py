"""An IDE that can be installed, in words: what it is doing now, how far it is, what went wrong and what to do. Pure.

For `/templates`; `settings_page` reads what it is made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codehub.i18n.locales import Locale
from codehub.ides.model import Installation, Problem, Status, StepBegun
from codehub.ides.service import Ide
from codehub.invocation import command
from codehub.runtimes.code_server import HOW_TO_GET_TOOLS

SIGNS = {"waiting": "○", "running": "◐", "stopping": "◐", "done": "✓", "failed": "▲"}
LOOKS = {"waiting": "moving", "running": "moving", "stopping": "moving"}
STATES = ("missing", "cancelled", *(state for state in SIGNS if state != "failed"))


@dataclass(frozen=True)
class Step:
    text: str
    took: str
    now: bool
    failed: bool


@dataclass(frozen=True)
class Shown:
    name: str
    state: str  # how it looks
    sign: str
    title: str
    text: str  # empty: there is nothing to say of it
    advice: str
    say: str  # to those who cannot see it
    steps: Sequence[Step]
    lines: Sequence[str]
    can_install: bool
    can_cancel: bool
    command: str


def shown(ide: Ide, locale: Locale, now: datetime) -> Shown:
    found = ide.installation
    state = _state(ide)
    text, advice = _said(found, state, locale, now) if state else ("", "")
    steps = _steps(found, locale, now) if found and state in {"running", "stopping", "failed", "cancelled"} else []
    title = locale.say(f"ide_{state}") if state else ""
    now_doing = next((step.text for step in steps if step.now), "")
    return Shown(
        ide.name,
        LOOKS.get(state, state),
        SIGNS.get(state, ""),
        title,
        text,
        advice,
        f"{title}: {now_doing}" if now_doing else title,
        steps,
        found.lines if found and state in {"running", "failed"} else [],
        can_install=state in {"missing", "cancelled", "failed"},
        can_cancel=state in {"waiting", "running"},
        command=command(f"ide install {ide.name}"),
    )


def _state(ide: Ide) -> str:
    """Empty: it is there, and was not installed from here."""
    found = ide.installation
    if found and found.is_open:
        return "stopping" if found.cancelled else found.status.lower()
    if ide.installed:
        return "done" if found and found.status is Status.DONE else ""
    return "missing" if found is None or found.status is Status.DONE else found.status.lower()


def _said(found: Installation | None, state: str, locale: Locale, now: datetime) -> tuple[str, str]:
    if found and state == "failed":
        return _problem(found, locale)
    spent = ((found.ended_at or now) - (found.started_at or found.asked_at)).total_seconds() if found else 0.0
    return locale.say(f"ide_{state}_body", span=locale.length(round(spent))), ""


def _problem(found: Installation, locale: Locale) -> tuple[str, str]:
    key, data = f"ide_failed_{found.problem or Problem.OTHER}", found.problem_data
    words = {
        "missing": ", ".join(data.get("missing", ())),
        "how": HOW_TO_GET_TOOLS,
        "said": data.get("said", ""),
        "step": _step_text(data["step"]["code"], data["step"]["title"], data["step"]["data"], locale)
        if "step" in data
        else "",
    }
    return locale.say(key, **words), locale.say(f"{key}_advice", **words)


def _steps(found: Installation, locale: Locale, now: datetime) -> list[Step]:
    ends = [*(step.at for step in found.steps[1:]), found.ended_at or now]
    return [_step(found, step, end, locale) for step, end in zip(found.steps, ends, strict=False)]  # none yet: none


def _step(found: Installation, step: StepBegun, end: datetime, locale: Locale) -> Step:
    last = step is found.steps[-1] and not step.before
    text = _step_text(step.code, step.title, step.data, locale)
    took = "" if step.before else locale.length(max(1, round((end - step.at).total_seconds())))
    return Step(text, took, now=last and found.is_open, failed=last and not found.is_open)


def _step_text(code: str, title: str, data: Mapping[str, Any], locale: Locale) -> str:
    key = f"ide_step_{code}"
    return locale.say(key, **data) if locale.knows(key) else title
