"""A line of a workspace's history as a sentence, for pages, API and command line. Pure.

The codes and their data are those of `workspaces.history`; what is not known here is shown as it stands.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from codehub.i18n import values
from codehub.i18n.locales import Locale

STATES = {
    "RUNNING": "state_running",
    "STANDBY": "state_asleep",
    "ARCHIVED": "state_stored",
    "PENDING": "state_new",
    "ERROR": "state_wrong",
    "DELETED": "state_trash",
}
# Said by a machine or a person, and quoted beside the sentence as it is.
REMARKS = {
    "note": "text",
    "held": "purpose",
    "ide_ended": "log_tail",
    "operation_retried": "message",
    "operation_given_up": "message",
    "fetch_failed": "message",
}


def sentence(
    locale: Locale,
    code: str,
    data: Mapping[str, Any],
    *,
    actor: str,
    to_state: str | None = None,
    now: datetime | None = None,
) -> str:
    """`now`: for a page; without it, moments are said exactly."""
    key = f"history_{code}"
    if not locale.knows(key):
        return code
    state = STATES.get(to_state or "")
    words = {"actor": actor, "state": locale.say(state) if state else to_state or "?"}
    return locale.tell(key, values.shown(locale, data, now) | words)


def remark(code: str, data: Mapping[str, Any]) -> str | None:
    """What is quoted beside it, the same in every language."""
    return str(data.get(REMARKS.get(code, "")) or "") or None


def told(locale: Locale, code: str, data: Mapping[str, Any], *, actor: str, to_state: str | None) -> str:
    """Both in one, for where there is one place: the API and the command line."""
    quoted = remark(code, data)
    said = sentence(locale, code, data, actor=actor, to_state=to_state)
    return f"{said}: {quoted}" if quoted else said
