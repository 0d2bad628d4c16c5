"""Texts in English and Korean: one file each in `languages/`. Every key exists in both; a test says so.

Here are those that pages, API and command line share; `web.texts` adds its own.
"""

import importlib.resources
import tomllib
from collections.abc import Mapping

LANGUAGES = {"en": "English", "ko": "한국어"}  # each in its own words
DEFAULT = "en"


def read(package: str) -> dict[str, dict[str, str]]:
    """The texts that a package brings, by language."""
    files = importlib.resources.files(package) / "languages"
    return {language: tomllib.loads((files / f"{language}.toml").read_text(encoding="utf-8")) for language in LANGUAGES}


TEXTS: Mapping[str, Mapping[str, str]] = read("codehub.i18n")


def choose(accept_language: str, *preferred: str | None) -> str:
    """The first preferred one that we have, else the one of ours that the browser likes best."""
    for candidate in (*preferred, *_accepted(accept_language)):
        if candidate in LANGUAGES:
            return candidate
    return DEFAULT


def of_environment(environment: Mapping[str, str]) -> str:
    """The language of a shell: `LANG=ko_KR.UTF-8`."""
    found = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    return choose("", found.partition("_")[0].partition(".")[0].lower())


def _accepted(accept_language: str) -> list[str]:
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
