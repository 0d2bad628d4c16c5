"""How a run ended, as a sentence. The codes are those of `sessions.model.EndReason`. Pure."""

from codehub.i18n.locales import Locale


def ended(locale: Locale, reason: str) -> str:
    return locale.say(f"run_ended_{reason}")
