"""Workspaces as the store returns them, for tests of what is said about them."""

from dataclasses import replace
from typing import Any

from codehub.workspaces import rules
from codehub.workspaces.model import Workspace
from tests.workspaces.test_rules import workspace as plain


def workspace(**changes: Any) -> Workspace:
    """With the phase that the database would compute."""
    w = replace(plain(), **changes)
    return replace(w, phase=rules.phase(w.observed_status, w.health_status, w.archive_key))
