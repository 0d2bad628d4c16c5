"""The codes of invitations: six letters that are read from a wall and typed into a telephone. Pure.

Letters that look like others or like digits (I, L, O, Q) and the other vowels, of which words are made, are left out:
19 letters, 47 million codes. Few are good at a time, and wrong ones are slowed down (`code_tries`).
"""

import secrets
import unicodedata

ALPHABET = "BCDFGHJKMNPRSTVWXYZ"
LENGTH = 6
LONGEST_TYPED = 40  # characters that are looked at
HALF = LENGTH // 2


def new() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def read(typed: str) -> str | None:
    """The code that was meant: in whatever case and width, with spaces or hyphens; None: it cannot be one."""
    if len(typed) > LONGEST_TYPED:
        return None
    plain = "".join(c for c in unicodedata.normalize("NFKC", typed).upper() if c.isalnum())
    return plain if len(plain) == LENGTH and set(plain) <= set(ALPHABET) else None


def spaced(code: str) -> str:
    """As it is read aloud, and shown on a wall."""
    return f"{code[:HALF]} {code[HALF:]}"
