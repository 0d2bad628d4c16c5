"""User names from what people are called: Korean in Latin letters, letter by letter. Pure."""

import re
import unicodedata

FIRST = ["g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "-", "j", "jj", "ch", "k", "t", "p", "h"]
MIDDLE = [
    "a",
    "ae",
    "ya",
    "yae",
    "eo",
    "e",
    "yeo",
    "ye",
    "o",
    "wa",
    "wae",
    "oe",
    "yo",
    "u",
    "wo",
    "we",
    "wi",
    "yu",
    "eu",
    "ui",
    "i",
]
LAST = [
    "-",
    "k",
    "k",
    "k",
    "n",
    "n",
    "n",
    "t",
    "l",
    "k",
    "m",
    "l",
    "l",
    "l",
    "p",
    "l",
    "m",
    "p",
    "p",
    "t",
    "t",
    "ng",
    "t",
    "t",
    "k",
    "t",
    "p",
    "t",
]
HANGUL, SYLLABLES = 0xAC00, 11172
LONGEST = 40
APART = re.compile(r"[^a-z0-9]+")


def _syllable(character: str) -> str:
    place = ord(character) - HANGUL
    if not 0 <= place < SYLLABLES:
        return character
    parts = FIRST[place // 588], MIDDLE[place % 588 // 28], LAST[place % 28]
    return "".join(parts).replace("-", "")


def user_name(display_name: str) -> str | None:
    """`gimmina` of 김민아, `jose-garcia` of José García; None: nothing of it can be written so."""
    latin = "".join(_syllable(c) for c in unicodedata.normalize("NFC", display_name))
    plain = "".join(c for c in unicodedata.normalize("NFKD", latin) if not unicodedata.combining(c))
    if not plain.isascii():
        return None
    return APART.sub("-", plain.casefold())[:LONGEST].strip("-") or None
