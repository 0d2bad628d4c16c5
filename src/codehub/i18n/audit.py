"""A line of the audit log as a sentence. The codes and their data are those of `audit.codes`. Pure."""

from collections.abc import Mapping
from typing import Any

from codehub.i18n import values
from codehub.i18n.locales import Locale


def sentence(locale: Locale, code: str, data: Mapping[str, Any], *, actor: str, subject: str) -> str:
    key = f"audit_{code.replace('.', '_')}"
    if not locale.knows(key):
        return code
    return locale.tell(key, values.shown(locale, data, None) | {"actor": actor, "subject": subject})
