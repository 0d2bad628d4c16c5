"""What the parts of this folder hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from codehub.policy.model import Role

Claims = Mapping[str, Any]


@dataclass(frozen=True)
class Metadata:
    """Of what a provider publishes about itself, what we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    token_auth_methods: tuple[str, ...]
    says_issuer: bool  # its answers name their issuer (RFC 9207)


@dataclass(frozen=True)
class Tokens:
    id_token: str = field(repr=False)
    access_token: str | None = field(repr=False)


@dataclass(frozen=True)
class Flow:
    """A login that has begun, and is to be finished by the same browser, once."""

    provider: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    browser: str  # a fingerprint of what the browser holds
    redirect_uri: str
    person_id: str  # who wants to link; empty: a login
    session_id: str  # of this browser when it began; empty: none


@dataclass(frozen=True)
class Subject:
    """Who came, as the provider says it and we believe it."""

    provider: str
    issuer: str
    subject: str
    label: str  # for its person to recognise
    wanted_names: tuple[str, ...]  # the best first
    display_name: str
    email: str | None  # in lower case; only a verified one
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Identity:
    id: str
    user_id: str
    provider: str
    issuer: str
    subject: str
    label: str
    email: str | None
    role_given: Role | None  # by the groups, at the last login; what an admin gave is not theirs to take
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True)
class Proposal:
    """A login there that a person may link with their account here, once they have said yes."""

    secret: str = field(repr=False)
    subject: Subject
