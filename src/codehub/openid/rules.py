"""The rules about logins by providers. Pure: no I/O, `now` is an argument."""

import base64
import hashlib
import hmac
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from codehub import ids, names
from codehub.hostnames import is_loopback
from codehub.openid.errors import BadTokenError, MixedUpError, ProviderRefusedError
from codehub.openid.model import Claims, Metadata, Subject
from codehub.policy import rules as policy
from codehub.policy.model import Role
from codehub.settings.openid import Provider

LEEWAY = 60.0  # seconds by which two clocks may differ
LONGEST_SUBJECT = 255
LONGEST_LABEL = 200
LONGEST_DISPLAY_NAME = 100
LONGEST_NAME = 40  # of a derived one: there is room for a number behind it
MOST_GROUPS = 2000
VERIFIED = "email_verified"
REQUIRED_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
HASHES = {"256": "sha256", "384": "sha384", "512": "sha512", "EdDSA": "sha512", "Ed25519": "sha512"}


def read_metadata(provider: Provider, document: Mapping[str, Any]) -> Metadata:
    """What it publishes, if it is its own: another issuer's document would send people elsewhere."""
    if document.get("issuer") != provider.issuer:
        raise ProviderRefusedError("its discovery document names another issuer than the settings")
    for name in REQUIRED_ENDPOINTS:
        if not _is_safe_endpoint(provider, document.get(name)):
            raise ProviderRefusedError(f"its discovery document has no {name} with https://")
    optional: dict[str, Any] = {
        name: document[name] if _is_safe_endpoint(provider, document.get(name)) else None
        for name in ("userinfo_endpoint", "end_session_endpoint")
    }
    methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return Metadata(
        issuer=provider.issuer,
        **{name: document[name] for name in REQUIRED_ENDPOINTS},
        **optional,
        token_auth_methods=tuple(m for m in methods if isinstance(m, str)) if isinstance(methods, list) else (),
        says_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _is_safe_endpoint(provider: Provider, url: object) -> bool:
    """By TLS; a provider on this machine may do without, on this machine."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username or parts.fragment:
        return False
    local = urlsplit(provider.issuer).scheme == "http"
    return parts.scheme == "https" or (parts.scheme == "http" and local and is_loopback(host))


def check_answer_issuer(metadata: Metadata, said: str | None) -> None:
    """RFC 9207: against a provider that has its own answers taken for another one's."""
    if said is None and not metadata.says_issuer:
        return
    if said != metadata.issuer:
        raise MixedUpError("the answer names another issuer" if said else "the answer does not name its issuer")


def check_claims(claims: Claims, provider: Provider, nonce: str, now: datetime) -> None:
    """Is this token about a login at this provider, for us, begun by us, and now?"""
    if claims.get("iss") != provider.issuer:
        raise BadTokenError("wrong issuer")
    _check_audience(claims, provider.client_id)
    at = now.timestamp()
    if _seconds(claims, "exp") <= at - LEEWAY:
        raise BadTokenError("expired")
    if _seconds(claims, "iat") > at + LEEWAY:
        raise BadTokenError("issued in the future")
    if "nbf" in claims and _seconds(claims, "nbf") > at + LEEWAY:
        raise BadTokenError("not yet valid")
    said = claims.get("nonce")
    if not _is_same(said, nonce):
        raise BadTokenError("wrong nonce")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise BadTokenError("no usable subject")


def _check_audience(claims: Claims, client_id: str) -> None:
    said = claims.get("aud")
    audiences = said if isinstance(said, list) else [said]
    if client_id not in audiences:
        raise BadTokenError("wrong audience")
    authorized = claims.get("azp")
    if authorized is None and len(audiences) > 1:
        raise BadTokenError("several audiences, and not said for which of them")
    if authorized is not None and authorized != client_id:
        raise BadTokenError("wrong authorized party")


def _seconds(claims: Claims, name: str) -> float:
    value = claims.get(name)
    try:
        seconds = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # JSON has numbers of any length
        seconds = math.inf
    if not math.isfinite(seconds):
        raise BadTokenError(f"no usable {name}")
    return seconds


def _is_same(said: object, expected: str) -> bool:
    """JSON can have halves of surrogate pairs, which are wrong and no mistake of ours."""
    return isinstance(said, str) and hmac.compare_digest(said.encode("utf-8", "surrogatepass"), expected.encode())


def check_access_token(claims: Claims, algorithm: str, access_token: str) -> None:
    """Does the access token belong to this ID token? Said by most providers; what it opens is believed of a person."""
    said = claims.get("at_hash")
    if said is None:
        return
    digest = hashlib.new(HASHES.get(algorithm, "") or HASHES[algorithm[-3:]], access_token.encode()).digest()
    half = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
    if not _is_same(said, half):
        raise BadTokenError("the access token is another login's")


def wants_more(claims: Claims, provider: Provider) -> bool:
    """Does the ID token leave out what we would know? Many providers give it only to those who ask for it."""
    wanted = {"name", *({"email"} if "email" in provider.scopes or provider.trust_email else set())}
    if provider.roles or provider.classes:
        wanted.add(provider.groups_claim)
    return not wanted <= claims.keys()


def merged(claims: Claims, more: Claims) -> Claims:
    """What the ID token says, and what it leaves out. That an address is verified counts where that address is said."""
    both = {**more, **claims}
    said = [one[VERIFIED] for one in (claims, more) if one.get("email") == both.get("email") and VERIFIED in one]
    return {**both, VERIFIED: said[0] if said else False}


def read_subject(claims: Claims, provider: Provider) -> Subject:
    email = _line(claims.get("email"), LONGEST_LABEL)
    preferred = _line(claims.get("preferred_username"), LONGEST_LABEL)
    full_name = _line(claims.get("name"), LONGEST_DISPLAY_NAME)
    verified = claims.get(VERIFIED) is True and email.count("@") == 1
    return Subject(
        provider=provider.name,
        issuer=provider.issuer,
        subject=claims["sub"],
        label=email or preferred or full_name or claims["sub"][:LONGEST_LABEL],
        wanted_names=_wanted_names(preferred, email, full_name),
        display_name=full_name,
        email=email.lower() if verified else None,
        groups=_groups(claims.get(provider.groups_claim)),
    )


def _line(value: object, most: int) -> str:
    """One line that can be shown; what cannot is left out, rather than refusing a person for it."""
    if not isinstance(value, str):
        return ""
    text = names.composed(" ".join(value.split())[:most].strip())
    return "" if names.complaint(text) else text


def _groups(value: object) -> tuple[str, ...]:
    """A list; some providers write a single one as text."""
    found = value if isinstance(value, list) else [value]
    return tuple(group for group in found[:MOST_GROUPS] if isinstance(group, str))


def _wanted_names(preferred: str, email: str, full_name: str) -> tuple[str, ...]:
    said = (preferred.partition("@")[0], email.partition("@")[0], full_name)
    found = [label for text in said if (label := as_label(text))]
    return tuple(dict.fromkeys(found))


def as_label(text: str) -> str:
    """`Müller, Ana` becomes `muller-ana`; what has no Latin letters becomes nothing."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    label = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_NAME].strip("-")
    return label if ids.is_label(label) else ""


def mapped_role(provider: Provider, groups: Iterable[str]) -> Role | None:
    """The highest that one of these groups gives; None: none gives any."""
    roles, held = dict(provider.roles), set(groups)
    return policy.highest(Role(role) for group, role in roles.items() if group in held)


def mapped_classes(provider: Provider, groups: Iterable[str]) -> frozenset[str]:
    held = set(groups)
    return frozenset(class_id for group, class_id in provider.classes if group in held)


def role_now(current: Role, given: Role | None, mapped: Role | None, otherwise: Role) -> tuple[Role, Role | None]:
    """A person's role after a login, and what of it the groups gave.

    Groups raise a role, and take back what they gave; what an admin gave by hand they do not take.
    """
    if mapped is not None and policy.outranks(mapped, current):
        return mapped, mapped
    if given is not None and given is current:
        return mapped or otherwise, mapped
    return current, None
