"""Plans, sessions and runs as the API shows them. What is stored for an idempotency key is this text, byte for byte."""

import json
from dataclasses import asdict
from datetime import date, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from codehub.i18n import sessions as sentences
from codehub.i18n.locales import Locale
from codehub.sessions.model import EndReason, Plan, Run, RunStatus, Session, SessionStatus, Tries

Kind = Literal["LEARN", "CHECK", "PRACTICE", "COMPLETE"]


class SessionOut(BaseModel):
    id: str
    plan_id: str
    position: int = Field(description="In its plan, from 0.")
    key: str = Field(description="What stays the same over a course's versions.")
    title: str
    scheduled_for_date: date
    status: SessionStatus
    changed_at: datetime = Field(description="Of the status.")
    blueprint_hash: str = Field(description="Of what its learner sees of the blueprint.")
    run_id: str | None = Field(description="Of its running run.")


class PlanSummary(BaseModel):
    id: str
    owner: str
    title: str
    created_by: str
    created_at: datetime
    course_id: str | None
    course_version: int | None
    starts_on: date | None
    total: int = Field(description="Sessions.")
    progress: dict[SessionStatus, int] = Field(description="How many of them are in each status.")


class PlanOut(PlanSummary):
    sessions: list[SessionOut]


class RunSummary(BaseModel):
    id: str
    session_id: str
    status: RunStatus
    step_index: int = Field(description="The step to do next; after the last, the number of steps.")
    step: Kind | None = Field(description="Its kind; null after the last.")
    fence: int = Field(description="Send it with every write. A start by another client makes it higher.")
    is_recovery: bool = Field(description="Was it taken up again since it began?")
    predecessor_id: str | None = Field(description="The run it goes on from, else the one before it.")
    blueprint_hash: str = Field(description="Of what its learner sees of the blueprint.")
    workspace_id: str | None
    started_at: datetime
    last_activity_at: datetime
    completed_at: datetime | None
    ended_at: datetime | None
    end_reason: EndReason | None
    end_note: str | None = Field(description="What the learner said.")


class RunOut(RunSummary):
    snapshot: Any = Field(description="The state that was saved with the last completed step; null: none was.")


class RunEntry(RunSummary):
    """A line of a session's audit trail."""

    ended: str | None = Field(
        description="How it ended, as a sentence in the language that `Accept-Language` asks for; null: it runs."
    )


class SnapshotOut(BaseModel):
    step_index: int
    state: Any
    at: datetime


class TriesOut(BaseModel):
    step_index: int
    tries: int = Field(description="That failed.")
    last_at: datetime
    wrong: list[str] = Field(description="Ids of the questions that were wrong, of a CHECK.")
    answers: dict[str, str] = Field(description="What was answered to these.")
    checks: list[dict[str, Any]] = Field(description="How each check of a PRACTICE went, with the end of its output.")


def show_tries(tries: Tries) -> TriesOut:
    last = tries.last_result
    said = {"wrong": last.get("wrong", []), "answers": last.get("answers", {}), "checks": last.get("checks", [])}
    return TriesOut(step_index=tries.step_index, tries=tries.count, last_at=tries.last_at, **said)


def show_session(session: Session) -> SessionOut:
    return SessionOut(**{**asdict(session), "blueprint_hash": session.view_hash})


def summary(plan: Plan) -> dict[str, Any]:
    fields = {name: getattr(plan, name) for name in PlanSummary.model_fields if hasattr(plan, name)}
    return {**fields, "total": sum(plan.progress.values())}


def show_plan(plan: Plan) -> PlanOut:
    return PlanOut(**summary(plan), sessions=[show_session(session) for session in plan.sessions])


def list_plan(plan: Plan) -> PlanSummary:
    return PlanSummary(**summary(plan))


def list_run(run: Run, locale: Locale) -> RunEntry:
    return RunEntry(**_fields(run), ended=run.end_reason and sentences.ended(locale, run.end_reason))


def run_json(run: Run) -> str:
    shown = {name: _plain(value) for name, value in _fields(run).items()}
    return json.dumps({**shown, "snapshot": run.snapshot}, ensure_ascii=False, separators=(",", ":"))


def _fields(run: Run) -> dict[str, Any]:
    fields = {name: getattr(run, name) for name in RunSummary.model_fields if hasattr(run, name)}
    completed_at = run.ended_at if run.status is RunStatus.COMPLETED else None
    return {**fields, "blueprint_hash": run.view_hash, "completed_at": completed_at}


def _plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
