"""Which passwords are taken, and whose tries are counted together."""

import unicodedata

import pytest

from codehub.auth import password_rules
from codehub.errors import PasswordRefusedError

LONG_ENOUGH = "a quiet lamp by the river"


@pytest.mark.parametrize(
    ("password", "names", "reason"),
    [
        ("quietlamp", (), "PASSWORD_SHORT"),
        ("", (), "PASSWORD_SHORT"),
        ("x" + "quiet lamp " * 30, (), "PASSWORD_LONG"),
        ("a" * 5_000_000, (), "PASSWORD_LONG"),
        ("quiet\nlamp by", (), "PASSWORD_CONTROL"),
        ("quiet\0lamp by", (), "PASSWORD_CONTROL"),
        ("quiet\ud800lamp by", (), "PASSWORD_CONTROL"),
        ("1234567890", (), "PASSWORD_COMMON"),
        ("Password123", (), "PASSWORD_COMMON"),
        ("1q2w3e4r5t", (), "PASSWORD_COMMON"),
        ("dkssudgktpdy", (), "PASSWORD_COMMON"),  # a greeting, on a Korean keyboard set to English
        ("aaaaaaaaaaaa", (), "PASSWORD_COMMON"),
        ("1212121212", (), "PASSWORD_COMMON"),
        ("christoph2x", ("Christoph2x",), "PASSWORD_NAME"),
        ("my-MINA-KIM-lamp", ("mina-kim",), "PASSWORD_NAME"),
        ("나는김민아입니다정말로", ("m1", "김민아입니다"), "PASSWORD_NAME"),
    ],
)
def test_a_password_that_is_guessed_early_or_cannot_be_typed_is_refused(
    password: str, names: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(PasswordRefusedError) as refused:
        password_rules.check_new(password, *names)
    assert refused.value.reason == reason
    if password:
        assert password not in str(refused.value)


@pytest.mark.parametrize(
    ("password", "names"),
    [
        (LONG_ENOUGH, ("mina",)),
        ("tenletters", ()),
        ("기차는여덟시에떠나네요", ("민아",)),
        ("a jun bug in june", ("jun", "")),  # a short name is in many words
        ("🌙🌊🪔🎈🎻🎹🥁🎺🎷🪕", ()),
    ],
)
def test_anything_else_of_ten_characters_is_taken(password: str, names: tuple[str, ...]) -> None:
    assert password_rules.check_new(password, *names) == password


def test_the_same_letters_are_the_same_password_whatever_keyboard_they_come_from() -> None:
    whole = "기차는여덟시에떠나네"
    apart = unicodedata.normalize("NFD", whole)
    assert apart != whole
    assert password_rules.check_new(apart) == whole == password_rules.normalized(apart)


def test_the_list_has_a_thousand_that_the_other_rules_would_take() -> None:
    listed = password_rules.common()
    assert len(listed) >= 1000
    assert all(len(entry) >= password_rules.SHORTEST and entry == entry.casefold() for entry in listed)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        (None, "local"),
        ("a socket", "local"),
    ],
)
def test_tries_are_counted_by_address_or_by_the_64_bits_that_one_household_has(
    address: str | None, network: str
) -> None:
    assert password_rules.network_of(address) == network


@pytest.mark.parametrize("typed", ["mina", "Mina", " mina ", "MINA"])
def test_a_name_is_the_same_as_a_telephone_types_it(typed: str) -> None:
    assert password_rules.login_name(typed) == "mina"
