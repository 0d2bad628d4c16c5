"""The rules about principals. Pure; asked by services and by the HTTP layer."""

from codehub.errors import ForbiddenError, NotFoundError
from codehub.policy.model import Principal, Role, Scope

TEACHERS_FACTOR = 10
# One sentence for unknown, malformed and somebody else's, so that nobody can tell them apart.
NO_SUCH_USER = "there is no such user"


def require_scope(caller: Principal, *, writes: bool) -> None:
    needed = Scope.WRITE if writes else Scope.READ
    if needed not in caller.scopes:
        raise ForbiddenError(f"this token lacks the scope `{needed}`")


def require_admin(caller: Principal) -> None:
    if not caller.is_admin:
        raise ForbiddenError("only an admin may do this")


def allowance(caller: Principal, limit: int) -> int | None:
    """How many of something this person may have, where learners may have `limit`; None: any number.

    Whoever looks after a class makes things for all of them.
    """
    if limit == 0 or caller.is_admin:
        return None
    return limit * TEACHERS_FACTOR if caller.role in {Role.TEACHER, Role.ADMIN} else limit


def require_self_or_admin(caller: Principal, name: str) -> None:
    """Somebody else's things are not there, rather than forbidden."""
    if caller.name != name and not caller.is_admin:
        raise NotFoundError(NO_SUCH_USER)
