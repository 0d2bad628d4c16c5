"""What is wrong with a course's folder, in the reader's language. Pure; used by pages.

`folder` and those it asks say it in English, as `codehub course check` prints it. Other languages are files beside this
with the same sentences, which have gaps for what differs. A sentence that is not there is told in English.
"""

import functools
import importlib.resources
import re
import tomllib

GAP = re.compile(r"\\\{(\w+)\\\}")
FIELD = re.compile(r"([A-Za-z]\w{0,40}): (.+)", re.DOTALL)  # the name of what is wrong, before what is wrong with it
LONGEST = 400  # characters: sentences are looked for one after the other
INNER = "what"  # a gap that is a sentence itself


@functools.cache
def _sentences(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    file = importlib.resources.files("codehub.courses") / "languages" / f"{language}.toml"
    if not file.is_file():
        return ()
    known: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple((pattern(sentence), said) for sentence, said in known.items())


def pattern(sentence: str) -> re.Pattern[str]:
    return re.compile(GAP.sub(r"(?P<\1>.+?)", re.escape(sentence)), re.DOTALL)


def told(what: str, language: str) -> str:
    if language == "en" or len(what) > LONGEST:
        return what
    named = FIELD.fullmatch(what)
    if (said := _told(what, language)) is not None:
        return said
    if named and (said := _told(named[2], language)) is not None:
        return f"{named[1]}: {said}"
    return what


def _told(what: str, language: str) -> str | None:
    for known, said in _sentences(language):
        if found := known.fullmatch(what):
            gaps = found.groupdict()
            if INNER in gaps:
                gaps[INNER] = _told(gaps[INNER], language) or gaps[INNER]
            return said.format(**gaps)
    return None
