"""A line of the audit log as a sentence. The codes and their data are those of `audit.codes`. Pure."""

from collections.abc import Mapping
from typing import Any

from codehub.i18n import values
from codehub.i18n.locales import Locale

OPERATOR = "cli:"  # before the name of who runs a command on the machine
HONORIFIC = "님이"  # in Korean, what a person's name is followed by; of what is no person, its words end by themselves


def sentence(locale: Locale, code: str, data: Mapping[str, Any], *, actor: str, subject: str) -> str:
    """Of a code that is not known, the code. Data that is not as it should be is shown as it is."""
    key = f"audit_{code.replace('.', '_')}"
    if not locale.knows(key):
        return code
    shown = values.shown(locale, data, None)
    system = f"actor_{actor.replace('-', '_')}"
    if actor.startswith(OPERATOR):
        actor = locale.say("actor_operator", name=actor.removeprefix(OPERATOR))
    elif locale.knows(system):
        actor = locale.say(system)
        said = locale.tell(key, shown | {"actor": actor, "subject": subject})
        return _begun(said.replace(f"{actor}{HONORIFIC}", actor))
    return locale.tell(key, shown | {"actor": actor, "subject": subject})


def _begun(said: str) -> str:
    return said[:1].upper() + said[1:]
