"""Which characters a name may have. Pure; asked by the services that keep what people call their things.

A name is shown to others, between other words. Characters that are not seen, or that turn what follows around, make
one name look like another.
"""

import re

# Controls, what Unicode calls format characters (directions, zero widths, tags), line and paragraph separators, halves
# of surrogate pairs, and the Korean fillers: letters of which nothing is seen.
UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
# One emoji may be made of several, with a joiner after a picture, its skin colour, or the mark that makes it one.
PICTURES = r"\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
PATTERN = rf"^(?:[^{UNSEEN}]|[{PICTURES}]\u200d)*$"
_good = re.compile(rf"(?:[{PICTURES}]\u200d|[^{UNSEEN}])*")


def complaint(text: str) -> str | None:
    """What is wrong with a name; None: nothing."""
    found = _good.match(text)
    end = found.end() if found else 0
    if end == len(text):
        return None
    return f"has a character that cannot be seen, or turns the others around (U+{ord(text[end]):04X})"
