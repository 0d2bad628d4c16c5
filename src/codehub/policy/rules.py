"""`decide`: may this principal do that? Pure; every service asks at its door. And numbers that depend on who asks."""

from collections.abc import Iterable

from codehub.errors import ForbiddenError, NotFoundError
from codehub.policy.actions import ENTERING, LEARNERS_OWN, SYSTEM, TABLE, Action, Cell, Subject
from codehub.policy.model import (
    ALL_SCOPES,
    PLATFORM,
    Decision,
    Effect,
    Kind,
    Principal,
    Relation,
    Resource,
    Role,
    Scope,
)

TEACHERS_FACTOR = 10
# One sentence for unknown, malformed and another person's, so that they cannot be told apart.
NO_SUCH_USER = "there is no such user"
ONLY_ADMINS = "only an admin may do this"
ONLY_THEIR_TEACHER = "only a teacher of theirs or an admin may do this"
ONLY_STAFF = "only a teacher or an admin may do this"
SHARED_ORIGIN = (
    "workspaces have no origin of their own here, so only their owners enter them, and admins none: "
    "set CODEHUB_WORKSPACE_DOMAIN"
)
NOT_BY_TOKEN = "an owner is told who enters their workspace: log in with a browser instead of a token"  # noqa: S105


def decide(principal: Principal | None, action: Action, resource: Resource = PLATFORM) -> Decision:
    """None: without a login."""
    rule = TABLE[action]
    if rule.subject is Subject.PUBLIC:
        return Decision(Effect.ALLOW, rule.about)
    if principal is None:
        return Decision(Effect.FORBID, "log in first")
    if principal.kind is Kind.OPERATOR:
        if action in LEARNERS_OWN:
            return _not_the_learner(action, resource)
        return Decision(Effect.ALLOW, rule.about, Relation.OPERATOR)
    if principal.kind is Kind.SYSTEM:
        return _by_system(principal, action)
    if rule.scope not in principal.scopes:
        return Decision(Effect.FORBID, _lacks(rule.scope))
    if principal.workspace_id is not None and principal.workspace_id != resource.id:
        return Decision(Effect.HIDE, "a pass is good for one workspace")
    return _by_relation(principal, action, resource)


def _by_system(principal: Principal, action: Action) -> Decision:
    if action in SYSTEM.get(principal.name, frozenset()):
        return Decision(Effect.ALLOW, TABLE[action].about, Relation.SYSTEM)
    return Decision(Effect.FORBID, f"{principal.name} may not {TABLE[action].about}")


def _by_relation(principal: Principal, action: Action, resource: Resource) -> Decision:
    rule, relations = TABLE[action], relations_to(principal, resource)
    found = next((relation for relation in Relation if relation in relations and relation in rule.cells), None)
    if found is None:
        return _refusal(principal, action, resource)
    told = rule.cells[found] is Cell.TOLD
    if action in ENTERING and (reason := _why_outside(principal, resource, found, told=told)):
        return Decision(Effect.FORBID, reason)
    return Decision(Effect.ALLOW, rule.about, found, tells_owner=told)


def _why_outside(principal: Principal, resource: Resource, relation: Relation, *, told: bool) -> str | None:
    """Why a principal who may otherwise enter does not. A program has no dashboard that scripts could act on."""
    by_browser = principal.token_id is None
    if not resource.is_isolated and (relation is not Relation.OWNER or (by_browser and administers(principal.role))):
        return SHARED_ORIGIN
    return NOT_BY_TOKEN if told and not by_browser else None


def _refusal(principal: Principal, action: Action, resource: Resource) -> Decision:
    match TABLE[action].subject:
        case Subject.PLATFORM:
            cells = TABLE[action].cells
            their_teacher = ONLY_THEIR_TEACHER if Relation.TEACHER in cells else ONLY_ADMINS
            return Decision(Effect.FORBID, ONLY_STAFF if Relation.STAFF in cells else their_teacher)
        case Subject.COURSE | Subject.EVENT:
            return Decision(Effect.FORBID, f"you may not {TABLE[action].about}: its owner and admins do")
        case Subject.CLASS if relations_to(principal, resource) & TABLE[Action.CLASS_SEE].cells.keys():
            return Decision(Effect.FORBID, f"you may not {TABLE[action].about}: its teachers do")
        case Subject.WORKSPACE if relations_to(principal, resource) & TABLE[Action.WORKSPACE_SEE].cells.keys():
            return Decision(Effect.FORBID, f"you may not {TABLE[action].about}: ask {resource.owner}")
        case Subject.PLAN if relations_to(principal, resource) & TABLE[Action.PLAN_SEE].cells.keys():
            return _not_the_learner(action, resource)
    return Decision(Effect.HIDE, "it belongs to another person")


def _not_the_learner(action: Action, resource: Resource) -> Decision:
    return Decision(Effect.FORBID, f"you may not {TABLE[action].about}: {resource.owner} does")


def relations_to(principal: Principal, resource: Resource) -> frozenset[Relation]:
    """Of a person."""
    holds = {
        Relation.PERSON: True,
        Relation.OWNER: resource.owner == principal.name,
        Relation.GUEST: resource.is_guest,
        Relation.MEMBER: resource.is_member,
        Relation.TEACHER: resource.is_taught or resource.owner in principal.teaches,
        Relation.MANAGER: resource.owner in principal.manages,
        Relation.ADMIN: administers(principal.role) and Scope.ADMIN in principal.scopes,
        Relation.STAFF: is_staff(principal),
    }
    return frozenset(relation for relation, held in holds.items() if held)


def allows(principal: Principal | None, action: Action, resource: Resource = PLATFORM) -> bool:
    return decide(principal, action, resource).allowed


def enforce(decision: Decision, missing: str = NO_SUCH_USER) -> Decision:
    """What is not allowed becomes the error for it. `missing`: what is said of something that does not exist."""
    match decision.effect:
        case Effect.HIDE:
            raise NotFoundError(missing)
        case Effect.FORBID:
            raise ForbiddenError(decision.reason)
    return decision


def require(principal: Principal | None, action: Action, resource: Resource = PLATFORM) -> Decision:
    """For what is the platform's, or an account's."""
    return enforce(decide(principal, action, resource))


def has_scope(principal: Principal, action: Action) -> bool:
    return principal.kind is not Kind.PERSON or TABLE[action].scope in principal.scopes


def require_scope(principal: Principal, action: Action) -> None:
    """What a route can say before it knows what the action is about."""
    if not has_scope(principal, action):
        raise ForbiddenError(_lacks(TABLE[action].scope))


def _lacks(scope: Scope) -> str:
    return f"this token lacks the scope `{scope}`"


def is_self(principal: Principal, name: str) -> bool:
    return Relation.OWNER in relations_to(principal, account(name))


def is_staff(principal: Principal) -> bool:
    return may_teach(principal.role)


def may_teach(role: Role) -> bool:
    return role in {Role.ADMIN, Role.TEACHER}


def looks_after(principal: Principal, name: str, role: Role) -> bool:
    """Asked again where an account is changed: a learner who became a teacher meanwhile is no teacher's to manage."""
    managed = relations_to(principal, account(name)) & {Relation.OWNER, Relation.ADMIN, Relation.MANAGER}
    return principal.kind is Kind.OPERATOR or bool(managed - {Relation.MANAGER}) or (bool(managed) and may_attend(role))


def may_attend(role: Role) -> bool:
    """Whoever attends a class can be looked into by its teachers: that must not become a way to an admin's things."""
    return role is Role.LEARNER


def outranks(role: Role, other: Role) -> bool:
    order = list(Role)  # the highest first
    return order.index(role) < order.index(other)


def highest(roles: Iterable[Role]) -> Role | None:
    return min(roles, key=list(Role).index, default=None)


def has_classes(principal: Principal) -> bool:
    """Teaches or may, or attends one."""
    return is_staff(principal) or principal.attends


def account(name: str) -> Resource:
    return Resource(owner=name)


def administers(role: Role) -> bool:
    return role is Role.ADMIN


def grantable(role: Role) -> frozenset[Scope]:
    """Scopes that a token of a person with this role can have."""
    return ALL_SCOPES if administers(role) else ALL_SCOPES - {Scope.ADMIN}


def allowance(principal: Principal, limit: int) -> int | None:
    """How many of something this principal may have, where learners may have `limit`; None: any number.

    Teachers make things for a whole class.
    """
    if limit == 0 or principal.kind is not Kind.PERSON or Relation.ADMIN in relations_to(principal, PLATFORM):
        return None
    return limit * TEACHERS_FACTOR if is_staff(principal) else limit
