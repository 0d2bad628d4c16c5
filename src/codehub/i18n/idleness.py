"""Why a workspace sleeps, or does not, as a sentence. The codes and their data are those of `activity.rules`. Pure."""

from collections.abc import Mapping
from typing import Any

from codehub.i18n import values
from codehub.i18n.locales import Locale


def sentence(locale: Locale, code: str, data: Mapping[str, Any]) -> str:
    said = locale.tell(f"idle_{code}", values.shown(locale, data, None))
    return f"{said} ({data['purpose']})" if data.get("purpose") else said
