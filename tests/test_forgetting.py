"""Names are taken out of data, and nothing else is."""

import pytest

from codehub.forgetting import Forgotten

MINA = Forgotten("u1", frozenset({"mina", "mina-kim"}), "김 미나 (A+)", "removed-u1")


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("mina asked", "removed-u1 asked"),
        ("asked by Mina.", "asked by removed-u1."),
        ("mina-kim's lab", "removed-u1's lab"),
        ("김 미나 (A+): hello", "removed-u1: hello"),
        ("minah and mina-kims and a-mina stay", "minah and mina-kims and a-mina stay"),
        ("Amina", "Amina"),
        ("", ""),
    ],
)
def test_names_are_whole_words(text: str, without: str) -> None:
    assert MINA.text(text) == without


def test_of_other_peoples_lines_only_the_fields_that_hold_names_are_changed() -> None:
    data = {"user": "mina", "text": "mina", "by": "user", "many": [{"owner": "mina-kim"}], "n": 3, "none": None}
    expected = {"user": "removed-u1", "text": "mina", "by": "user", "many": [{"owner": "removed-u1"}], "n": 3}
    assert MINA.data(data, about=False) == {**expected, "none": None}
    assert MINA.data(data, about=True) == {**expected, "text": "removed-u1", "none": None}


def test_words_of_ours_stay_whatever_somebody_is_called() -> None:
    user = Forgotten("u2", frozenset({"user", "learner"}), "", "removed-u2")
    assert user.data({"by": "user", "role": "learner", "user": "user"}, about=True) == {
        "by": "user",
        "role": "learner",
        "user": "removed-u2",
    }
