"""What settings mean, in every language that pages have."""

import dataclasses
import re
import typing

import pytest

from codehub.i18n.texts import DEFAULT, LANGUAGES
from codehub.settings import meanings, openid
from codehub.settings.groups import Settings

OTHERS = [language for language in LANGUAGES if language != DEFAULT]
# What no language says in other words: names, numbers, addresses, what stands in `code`.
FIXED = re.compile(r"`[^`]+`|\b[A-Z]+(?:_[A-Z]+)+\b|(?<![\w/.])\d[\d.]+(?![\w.]*/)|/[a-z]+(?:/[a-z]+)*|\*\.[\w.]+")


def english() -> dict[str, str]:
    hints = typing.get_type_hints(Settings)
    groups = [hints[group.name] for group in dataclasses.fields(Settings) if group.name != "openid"]
    ours = {f.metadata["env"]: f.metadata["help"] for group in groups for f in dataclasses.fields(group)}
    return {**ours, **{name: meaning for name, _, meaning in openid.described()}}


@pytest.mark.parametrize("language", OTHERS)
def test_every_setting_has_its_meaning_in_every_language_and_no_other_has(language: str) -> None:
    assert meanings.known(language).keys() == english().keys()


@pytest.mark.parametrize("language", OTHERS)
def test_a_meaning_keeps_what_is_the_same_in_every_language(language: str) -> None:
    known = meanings.known(language)
    lost = {name: [part for part in FIXED.findall(told) if part not in known[name]] for name, told in english().items()}
    assert {name: parts for name, parts in lost.items() if parts} == {}


def test_what_is_not_there_is_told_in_english() -> None:
    assert meanings.told("CODEHUB_NEW", "New.", "ko") == ("New.", "en")
    assert meanings.told("CODEHUB_HOST", "Address to listen on.", "ko")[1] == "ko"
    assert meanings.told("CODEHUB_HOST", "Address to listen on.", "en") == ("Address to listen on.", "en")
