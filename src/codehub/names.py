"""Which characters a name may have. Pure; asked by the services that keep what people call their things.

A name is shown to others, between other words. Characters that are not seen, that turn what follows around or that are
piled up over it, make one name look like another.
"""

import re
import unicodedata

# Controls, what Unicode calls format characters (directions, zero widths, tags) and default ignorable ones (joiners of
# letters, selectors of variants, vowels and Korean fillers of which nothing is seen), line and paragraph separators,
# a Braille cell without dots and a note without a head. Those above U+FFFF are written as themselves, because regular
# expressions have no common escape for them.
UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# A picture may be followed by a mark that says how it is drawn, and be joined to another: one emoji of several. Of
# letters and digits only a few have such a mark, as in a keycap.
PICTURES = "\\u2190-\\u27ff\\u2900-\\u2bff\U0001f000-\U0001faff"
MARKED = r"#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u3030\u303d\u3297\u3299"
_MARKED_OR_PICTURE = rf"[{MARKED}]\ufe0f?|[{PICTURES}][\ufe0e\ufe0f]?\u200d?"
PATTERN = f"^(?:[^{UNSEEN}{PICTURES}{MARKED}]|{_MARKED_OR_PICTURE})*$"
# JSON can have halves of surrogate pairs, which most regular expressions cannot speak of.
_good = re.compile(rf"(?:[^\ud800-\udfff{UNSEEN}{PICTURES}{MARKED}]|{_MARKED_OR_PICTURE})*")
MARKS = 4  # over or under one letter; scripts that are written with them have up to three
LONGEST = 500  # characters that are brought into one form; sorting marks takes time by the square of their number


def composed(text: str) -> str:
    """Letters with their marks as one character where there is one: what macOS takes apart looks the same whole."""
    return unicodedata.normalize("NFC", text) if len(text) <= LONGEST else text


def complaint(text: str) -> str | None:
    """What is wrong with a name; None: nothing. An empty one is no name, and for others to judge."""
    found = _good.match(text)
    end = found.end() if found else 0
    if end < len(text):
        return f"has a character that cannot be seen, or turns the others around (U+{ord(text[end]):04X})"
    kinds = [unicodedata.category(character) for character in text]
    if kinds and all(kind[0] in "ZM" for kind in kinds):
        return "has nothing that can be seen"
    if any(all(kind in {"Mn", "Me"} for kind in kinds[n : n + MARKS + 1]) for n in range(len(kinds) - MARKS)):
        return f"has more than {MARKS} marks over or under one letter"
    return None
