"""Sealed secrets: opened by any of our keys, at their own place, and by nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from codehub.auth.sealing import Sealer

NEW, OLD = "the-new-signing-key", "the-old-signing-key"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_what_is_sealed_opens_and_is_sealed_otherwise_each_time(text: str) -> None:
    sealer = Sealer(NEW, "x")
    first, second = sealer.seal(text, "a place"), sealer.seal(text, "a place")
    assert sealer.open(first, "a place") == text
    assert first != second
    assert len(text) < 4 or text.encode() not in first


def test_what_the_old_key_sealed_opens_after_a_rotation() -> None:
    before, during, after = Sealer(OLD, "x"), Sealer(f"{NEW}, {OLD}", "x"), Sealer(NEW, "x")
    assert during.open(before.seal("a token", "p"), "p") == "a token"
    assert after.open(during.seal("a token", "p"), "p") == "a token"
    assert after.open(before.seal("a token", "p"), "p") is None


def test_what_is_moved_or_meant_for_another_purpose_does_not_open() -> None:
    sealed = Sealer(NEW, "x").seal("a token", "p")
    assert Sealer(NEW, "x").open(sealed, "another place") is None
    assert Sealer(NEW, "y").open(sealed, "p") is None


@given(st.binary(max_size=60))
def test_nothing_made_up_opens(made_up: bytes) -> None:
    assert Sealer(NEW, "x").open(made_up, "p") is None
