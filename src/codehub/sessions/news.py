"""What others are told of plans, sessions and runs: events for their learner. Ids and states, never content.

Written by the statements of `store` in the transaction of the change.
"""

from dataclasses import replace

from codehub.events import model as events
from codehub.events.model import Event
from codehub.sessions.model import Run, Session, SessionStatus


def plan_updated(owner_id: str, plan_id: str) -> Event:
    return Event(events.user(owner_id), "plan_updated", plan_id, {"plan_id": plan_id})


def session_updated(owner_id: str, session_id: str, plan_id: str, status: SessionStatus) -> Event:
    data = {"session_id": session_id, "plan_id": plan_id, "status": status}
    return Event(events.user(owner_id), "session_updated", session_id, data)


def run_updated(run: Run) -> Event:
    data = {
        "run_id": run.id,
        "session_id": run.session_id,
        "plan_id": run.plan_id,
        "status": run.status,
        "step_index": run.step_index,
        "fence": run.fence,
    }
    return Event(events.user(run.owner_id), "run_updated", run.id, data)


def run_tried(run: Run) -> Event:
    """A CHECK or PRACTICE was not passed."""
    return replace(run_updated(run), kind="run_tried")


def both(run: Run, status: SessionStatus) -> list[Event]:
    """A run that changed its session, too."""
    return [run_updated(run), session_updated(run.owner_id, run.session_id, run.plan_id, status)]


def closed(owner_id: str, session: Session, run: Run | None) -> list[Event]:
    """A session that a person ended, and the run that ended with it."""
    told = session_updated(owner_id, session.id, session.plan_id, session.status)
    return [run_updated(run), told] if run else [told]
