"""Names and random ids. Ids are DNS labels, because a workspace's id becomes part of a host name."""

import base64
import re
import secrets

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def is_label(text: str) -> bool:
    return DNS_LABEL.fullmatch(text) is not None


def new(length: int = 12) -> str:
    """A random DNS label: 5 bits a character."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_secret() -> str:
    """256 random bits, safe in a URL."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
