"""Tokens: signed, the same whenever they are made again, and nothing else is accepted."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.waiting_room import tokens
from codehub.waiting_room.tokens import LONGEST, Reservation, Tokens, Waiting

KEY = "a-signing-key-for-tests"
SECRET = bytes(range(32))
MINA = Waiting("exam", tokens.pid(SECRET, "abc"), 2**32 + 1, 1_780_000_000_000, "abc", "mina")
PLACE = Reservation("exam", "abc", 2**32 + 1, 1_780_000_300_000)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(
    st.from_regex(tokens.EVENT_ID, fullmatch=True),
    st.integers(1, 2**53),
    st.integers(0, 2**45),
    names.map("=".__add__),
    names,
)
def test_a_token_says_what_it_was_made_of(event: str, seq: int, joined: int, person: str, name: str) -> None:
    made = Waiting(event, tokens.pid(SECRET, person), seq, joined, person, name)
    token = Tokens(KEY).waiting(made)
    assert len(token) <= LONGEST
    assert Tokens(KEY).read_waiting(token) == made
    assert token == Tokens(KEY).waiting(made), "and is the same whenever it is made"
    assert token.startswith(f"{event}.{made.pid}.")
    place = Reservation(event, person, seq, joined)
    assert Tokens(KEY).read_reservation(Tokens(KEY).reservation(place)) == place


def test_every_single_change_of_a_token_is_noticed() -> None:
    ours = Tokens(KEY)
    token = ours.waiting(MINA)
    alphabet = "abAB01-_.=~ "
    for i, other in itertools.product(range(len(token)), alphabet):
        changed = token[:i] + other + token[i + 1 :]
        assert changed == token or ours.read_waiting(changed) is None
    for i in range(len(token)):
        assert ours.read_waiting(token[:i]) is None
        assert ours.read_waiting(token[:i] + token[i + 1 :]) is None


@pytest.mark.parametrize(
    "wrong",
    ["", ".", "...", "....", "exam", "exam.a.b.c", "한국어.a.b.c", "\udc80.a.b.c", "a" * (LONGEST + 1), "." * LONGEST],
)
def test_what_is_no_token_is_none(wrong: str) -> None:
    assert Tokens(KEY).read_waiting(wrong) is None
    assert Tokens(KEY).read_reservation(wrong) is None


def test_a_token_for_one_thing_is_none_for_another() -> None:
    ours = Tokens(KEY)
    assert ours.read_reservation(ours.waiting(MINA)) is None
    assert ours.read_waiting(ours.reservation(PLACE)) is None


def test_keys_rotate_and_another_platforms_token_is_none() -> None:
    token = Tokens("the-old-key-of-this-platform").waiting(MINA)
    assert Tokens("the-new-key-of-this-platform,the-old-key-of-this-platform").read_waiting(token) == MINA
    assert Tokens("the-new-key-of-this-platform").read_waiting(token) is None


def test_wrong_tokens_push_no_right_one_out_of_what_was_read_lately() -> None:
    ours = Tokens(KEY)
    token = ours.waiting(MINA)
    ours.read_waiting(token)
    for n in range(100):
        ours.read_waiting(f"exam.{n}.x.y")
    assert ours._read.cache_info().currsize == 1
    assert ours._read.cache_info().maxsize == tokens.CACHED


def test_a_person_is_the_same_in_an_event_and_another_in_the_next() -> None:
    assert tokens.pid(SECRET, "abc") == tokens.pid(SECRET, "abc")
    assert len(tokens.pid(SECRET, "abc")) == 12
    assert tokens.pid(SECRET, "abc") != tokens.pid(SECRET[::-1], "abc")
    assert tokens.pid(SECRET, "abc") != tokens.pid(SECRET, "=abc"), "a string is not the account of that id"


def test_draws_of_a_lottery_are_spread_and_fixed() -> None:
    draws = [tokens.lottery_number(SECRET, str(n)) for n in range(4000)]
    assert draws == [tokens.lottery_number(SECRET, str(n)) for n in range(4000)]
    assert 0 <= min(draws) < 2**23
    assert 2**31 - 2**23 < max(draws) < 2**31
    assert 0.45 < sum(draws) / len(draws) / 2**31 < 0.55
    assert sorted(range(4000), key=draws.__getitem__)[:50] != list(range(50))
