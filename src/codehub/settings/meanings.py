"""What a setting means, in the reader's language. English stands with the setting; others are files in `languages/`.

Used by the page `/settings`. What is not there is told in English.
"""

import functools
import importlib.resources
import tomllib
from collections.abc import Mapping

ENGLISH = "en"


@functools.cache
def known(language: str) -> Mapping[str, str]:
    """By environment name; those of a login's provider as `CODEHUB_OPENID_NAME_…`."""
    file = importlib.resources.files("codehub.settings") / "languages" / f"{language}.toml"
    if language == ENGLISH or not file.is_file():
        return {}
    return tomllib.loads(file.read_text(encoding="utf-8"))


def told(name: str, english: str, language: str) -> tuple[str, str]:
    """The meaning, and the language that it is in."""
    said = known(language).get(name)
    return (english, ENGLISH) if said is None else (said, language)
