"""ID tokens: is the signature by the provider's own key? Called by `client`; what they say is judged by `rules`."""

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey
from joserfc.util import urlsafe_b64decode

from codehub.openid.errors import BadTokenError, UnknownKeyError
from codehub.openid.model import Claims

# Only those with a public and a private key: with a shared one, whoever reads the provider's public key could sign.
FAMILIES: Mapping[str, type[Key]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSAKey),
    **dict.fromkeys(("ES256", "ES384", "ES512"), ECKey),
    **dict.fromkeys(("EdDSA", "Ed25519"), OKPKey),
}
SMALLEST_RSA = 2048
MOST_KEYS = 100
LONGEST_TOKEN = 65_536


class _Registry(jws.JWSRegistry):
    """A header may carry a chain of certificates, which we do not look at."""

    max_header_length = 16_384
    max_payload_length = LONGEST_TOKEN


_registry = _Registry(algorithms=list(FAMILIES), strict_check_header=False)


def read_keys(document: Mapping[str, Any]) -> list[Key]:
    """Those that can sign and that we understand; others are another program's."""
    published = document.get("keys")
    found = []
    for data in published[:MOST_KEYS] if isinstance(published, list) else []:
        if isinstance(data, dict) and data.get("kty") in {"RSA", "EC", "OKP"} and data.get("use", "sig") == "sig":
            try:
                with warnings.catch_warnings(action="ignore"):  # of small keys, which we leave out
                    key = JWKRegistry.import_key(data)
            except (JoseError, ValueError, TypeError, KeyError):
                continue
            if not isinstance(key, RSAKey) or key.public_key.key_size >= SMALLEST_RSA:
                found.append(key)
    return found


def verified(token: str, keys: Sequence[Key]) -> tuple[str, Claims]:
    """(algorithm, claims) of a token with a good signature."""
    if len(token) > LONGEST_TOKEN:
        raise BadTokenError("the token is too long")
    header = _header(token)
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in FAMILIES:
        raise BadTokenError(f"the algorithm {str(algorithm)[:20]!r} is not accepted")
    key = _choose(keys, algorithm, header.get("kid"))
    try:
        with warnings.catch_warnings(action="ignore"):  # `EdDSA` has a newer name, and is good
            found = jwt.decode(token, key, algorithms=[algorithm], registry=_registry)
    except (JoseError, ValueError, TypeError, RecursionError) as e:
        raise BadTokenError(f"wrong signature ({type(e).__name__})") from e
    return algorithm, found.claims


def _header(token: str) -> Mapping[str, Any]:
    try:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0].encode("ascii")))
    except (ValueError, RecursionError) as e:
        raise BadTokenError("what it sent is no token") from e
    if not isinstance(header, dict):
        raise BadTokenError("what it sent is no token")
    return header


def _choose(keys: Sequence[Key], algorithm: str, kid: object) -> Key:
    """The one with the token's key id; without an id, the only one that fits."""
    fits = [
        key
        for key in keys
        if isinstance(key, FAMILIES[algorithm]) and key.dict_value.get("alg", algorithm) in {algorithm, "EdDSA"}
    ]
    named = fits if kid is None else [key for key in fits if key.dict_value.get("kid") == kid]
    if len(named) == 1 or (named and kid is not None):
        return named[0]
    raise UnknownKeyError("signed with a key that it does not publish" if kid else "not said with which of its keys")
