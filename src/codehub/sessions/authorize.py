"""May this principal do that with this plan, session or run? All are one learner's. Asked by the services here."""

from codehub import ids
from codehub.errors import NotFoundError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Decision, Effect, Principal, Resource
from codehub.sessions.errors import PlanNotFoundError, RunNotFoundError, SessionNotFoundError


def no_plan(id_: str) -> NotFoundError:
    """The same for one that never was and for another person's; so for sessions and runs."""
    return PlanNotFoundError(f"there is no plan {id_[:63]}")


def no_session(id_: str) -> NotFoundError:
    return SessionNotFoundError(f"there is no session {id_[:63]}")


def no_run(id_: str) -> NotFoundError:
    return RunNotFoundError(f"there is no run {id_[:63]}")


def is_id(text: str) -> bool:
    """Could it be one? A malformed id is like an unknown one, and the database is not asked."""
    return ids.is_label(text)


def authorize(caller: Principal, action: Action, owner: str, missing: NotFoundError) -> Decision:
    decision = policy.decide(caller, action, Resource(owner=owner))
    if decision.effect is Effect.HIDE:
        raise missing
    return policy.enforce(decision)
