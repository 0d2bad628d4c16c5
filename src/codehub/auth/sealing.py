"""Secrets that we have to read again and that others must not find in a copy of the database: sealed with our own key.

AES-256-GCM. Keys rotate as those of signatures do (`signing`): the first seals, all open.
"""

import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = 12  # bytes


class Sealer:
    def __init__(self, keys: str, purpose: str) -> None:
        derived = [hmac.digest(key.strip().encode(), purpose.encode(), "sha256") for key in keys.split(",")]
        self._ciphers = [AESGCM(key) for key in derived]

    def seal(self, text: str, place: str) -> bytes:
        """`place`: where it is kept. Moved to another one, it does not open."""
        nonce = os.urandom(NONCE)
        return nonce + self._ciphers[0].encrypt(nonce, text.encode(), place.encode())

    def open(self, sealed: bytes, place: str) -> str | None:
        """None: of a key that we do not have any more, or not sealed for this place."""
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(sealed[:NONCE], sealed[NONCE:], place.encode()).decode()
            except (InvalidTag, ValueError):
                continue
        return None
