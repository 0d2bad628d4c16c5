"""Idempotency keys: how a client names a request, so that sending it again gets the first answer. Used by `Runs`.

A key is a person's own, stands for one request (its fingerprint), and is stored with the answer in the transaction of
what was done. Quoted, as the IETF draft has it, and bare are the same key.
"""

import hashlib
import re
from datetime import datetime

from codehub.db import Connection
from codehub.errors import InvalidRequestError
from codehub.policy.model import Principal
from codehub.sessions import store
from codehub.sessions.store import Key

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LONGEST = 255  # characters
# Printable ASCII. A bare key does not begin with a quote.
QUOTED, BARE = r'"((?:[ !#-\[\]-~]|\\["\\])*)"', r"[!#-~](?:[ -~]*[!-~])?"
PATTERN = (
    r'^(?:"(?:[ !#-\[\]-~]|\\["\\]){1,255}"|[!#-~](?:[ -~]{0,253}[!-~])?)$'  # both, as the documentation states it
)


def parse(header: str | None) -> str | None:
    """The key that a header names; None: there is no header."""
    if header is None:
        return None
    text = header.strip(" \t")
    quoted = re.fullmatch(QUOTED, text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not key:
        raise InvalidRequestError("is empty: leave the header out, or send a random text", field=HEADER)
    if len(key) > LONGEST:
        raise InvalidRequestError(f"has {len(key)} characters; {LONGEST} is the most", field=HEADER)
    if quoted is None and re.fullmatch(BARE, text) is None:
        raise InvalidRequestError("must be printable ASCII, with quotes around it or without", field=HEADER)
    return key


def key_of(caller: Principal, key: str | None, *request: str) -> Key | None:
    """`request`: what the key stands for; the same key for anything else is a conflict."""
    if key is None:
        return None
    who = caller.id or caller.name
    lock = int.from_bytes(_hash("idempotency-key", who, key)[:8], signed=True)
    return Key(who, key, _hash(*request), lock)


def _hash(*parts: str) -> bytes:
    """Of the parts as they are, wherever one ends and the next begins."""
    return hashlib.sha256("\n".join(f"{len(part)}:{part}" for part in parts).encode()).digest()


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove keys past their time; called by housekeeping, a bounded number at a time."""
    return await store.prune_keys(c, before, limit)
