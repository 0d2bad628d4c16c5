"""Rules about what providers say."""

from typing import Any

import pytest

from codehub.openid import rules

MINA, ADMIN = "mina@school.example", "admin@school.example"


@pytest.mark.parametrize(
    ("token", "more", "verified"),
    [
        ({"email": MINA, "email_verified": True}, {}, True),
        ({}, {"email": MINA, "email_verified": True}, True),
        ({"email": MINA}, {"email": MINA, "email_verified": True}, True),
        ({"email": ADMIN}, {"email": MINA, "email_verified": True}, False),
        ({"email_verified": True}, {"email": ADMIN}, False),
        ({"email": MINA, "email_verified": False}, {"email": MINA, "email_verified": True}, False),
        ({"email": MINA}, {"email_verified": True}, False),
        ({}, {}, False),
    ],
)
def test_that_an_address_is_verified_counts_only_of_that_address(
    token: dict[str, Any], more: dict[str, Any], verified: bool
) -> None:
    found = rules.merged(token, more)
    assert found["email_verified"] is verified
    assert found.get("email") == token.get("email", more.get("email"))
