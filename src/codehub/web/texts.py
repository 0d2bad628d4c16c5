"""What pages say, in English and Korean: one file each in `languages/`. Every key exists in both; a test says so."""

import importlib.resources
import tomllib

LANGUAGES = {"en": "English", "ko": "한국어"}  # each in its own words
DEFAULT = "en"


def _read(language: str) -> dict[str, str]:
    file = importlib.resources.files("codehub.web") / "languages" / f"{language}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


TEXTS: dict[str, dict[str, str]] = {language: _read(language) for language in LANGUAGES}


def choose(asked: str | None, remembered: str | None, accept_language: str) -> str:
    """The language asked for now or before, else the one of ours that the browser likes best."""
    for candidate in (asked, remembered, *_preferred(accept_language)):
        if candidate in TEXTS:
            return candidate
    return DEFAULT


def _preferred(accept_language: str) -> list[str]:
    """`ko-KR,ko;q=0.9,en;q=0.8` by weight; a language without one weighs most, one of weight 0 is not wanted."""
    weighed = []
    for part in accept_language.split(","):
        tag, _, parameter = part.partition(";")
        weighed.append((_weight(parameter), tag.strip().lower().partition("-")[0]))
    return [language for weight, language in sorted(weighed, key=lambda pair: -pair[0]) if weight > 0]


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
