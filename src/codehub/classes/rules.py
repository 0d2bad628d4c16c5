"""The rules about classes. Pure."""

from datetime import datetime

from codehub.classes.errors import ClassArchivedError, LastTeacherError, NotALearnerError, NotATeacherError
from codehub.classes.model import Invitation, MemberRole, SchoolClass
from codehub.policy import rules as policy
from codehub.policy.model import Role


def check_member(name: str, role: Role, wanted: MemberRole) -> None:
    """May an account of this role come into a class as this?"""
    if wanted is MemberRole.LEARNER and not policy.may_attend(role):
        raise NotALearnerError(f"{name} is a {role}: only accounts with the role learner attend a class")
    if wanted is MemberRole.TEACHER and not policy.may_teach(role):
        raise NotATeacherError(f"{name} is a learner: ask an admin to make them a teacher first")


def check_open(found: SchoolClass) -> None:
    if found.archived_at is not None:
        raise ClassArchivedError(f"{found.title} is archived: take it out of the archive first")


def check_teacher_remains(name: str, teachers: int) -> None:
    """Asked before a teacher is taken out."""
    if teachers <= 1:
        raise LastTeacherError(f"{name} is the only teacher: add another one first, or archive the class")


def is_good(invitation: Invitation, now: datetime) -> bool:
    """Does it let another person in?"""
    left = invitation.max_uses is None or invitation.uses < invitation.max_uses
    return left and invitation.revoked_at is None and invitation.expires_at > now
