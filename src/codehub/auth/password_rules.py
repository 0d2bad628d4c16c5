"""Which passwords are taken, whose tries are counted together, and how often one may try. Pure; asked by `passwords`.

Long and not guessed first: no demands for digits or signs, which make passwords no harder to guess and harder to keep
in mind.
"""

import importlib.resources
import unicodedata
from functools import cache
from ipaddress import IPv6Address, IPv6Network, ip_address

from codehub.errors import PasswordRefusedError

SHORTEST, LONGEST = 10, 200  # characters, as a reader counts them
FEWEST_DIFFERENT = 5  # characters of a password: `aaaaaaaaaa` and `1212121212` are guessed early
SHORTEST_NAME = 4  # a name that is looked for inside of a password: shorter ones are in many words
LOCAL = "local"  # the network of what came by no network


@cache
def common() -> frozenset[str]:
    """The most common ones that are long enough, in lower case."""
    listed = (importlib.resources.files("codehub.auth") / "common_passwords.txt").read_text("utf-8")
    return frozenset(listed.split())


def normalized(password: str) -> str:
    """The same letters are the same password, whatever keyboard they were typed on: macOS takes Korean apart."""
    return unicodedata.normalize("NFC", password) if len(password) <= 4 * LONGEST else password


def check_new(password: str, *names: str) -> str:
    """Returns what is to be hashed. `names`: what its person is called."""
    password = normalized(password)
    if complaint := _complaint(password, [name.casefold() for name in names if name]):
        raise PasswordRefusedError(complaint[1], reason=complaint[0])
    return password


def _complaint(password: str, names: list[str]) -> tuple[str, str] | None:
    """A code for pages, and the words of the API."""
    plain = password.casefold()
    if len(password) < SHORTEST:
        return "PASSWORD_SHORT", f"has fewer than {SHORTEST} characters"
    if len(password) > LONGEST:
        return "PASSWORD_LONG", f"has more than {LONGEST} characters"
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in password):
        return "PASSWORD_CONTROL", "has a character that cannot be typed"
    if any(name == plain or (len(name) >= SHORTEST_NAME and name in plain) for name in names):
        return "PASSWORD_NAME", "has the person's name in it: choose another"
    if plain in common() or len(set(plain)) < FEWEST_DIFFERENT:
        return "PASSWORD_COMMON", "is one of the most common, which are guessed first: choose another"
    return None


def login_name(typed: str) -> str:
    """Names are in lower case; telephones begin with a capital, and end with a space."""
    return typed.strip().casefold()


def network_of(address: str | None) -> str:
    """Whose tries are counted together: an IPv4 address, or the /64 that one household or computer has of IPv6."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return LOCAL
    return str(IPv6Network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else str(parsed)
