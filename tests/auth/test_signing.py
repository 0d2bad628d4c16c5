"""Signatures: made with the first key, accepted from all, worthless for another purpose or when touched."""

from hypothesis import given
from hypothesis import strategies as st

from codehub.auth.signing import Signer

NEW, OLD = "the-new-signing-key", "the-old-signing-key"


def test_what_the_old_key_signed_is_accepted_after_a_rotation_and_new_things_are_signed_with_the_new_key() -> None:
    before, during, after = Signer(OLD, "x"), Signer(f"{NEW}, {OLD}", "x"), Signer(NEW, "x")
    assert during.verify(before.sign("a.1")) == "a.1"
    assert after.verify(during.sign("a.1")) == "a.1"
    assert after.verify(before.sign("a.1")) is None


def test_a_signature_for_one_purpose_is_worthless_for_another() -> None:
    assert Signer(NEW, "x").verify(Signer(NEW, "y").sign("a.1")) is None


@given(st.text(max_size=100))
def test_nothing_made_up_is_accepted(text: str) -> None:
    assert Signer(NEW, "x").verify(text) is None


@given(st.text("abc.123", min_size=1, max_size=20), st.integers(0), st.characters(max_codepoint=127))
def test_changing_any_character_breaks_the_signature(payload: str, where: int, other: str) -> None:
    signed = Signer(NEW, "x").sign(payload)
    at = where % len(signed)
    changed = signed[:at] + other + signed[at + 1 :]
    assert changed == signed or Signer(NEW, "x").verify(changed) is None
