"""The codes of invitations: what is typed is forgiven, what looks alike is not in them."""

import pytest

from codehub.classes import codes


def test_a_new_code_has_six_letters_of_which_none_looks_like_another() -> None:
    for _ in range(200):
        code = codes.new()
        assert len(code) == 6
        assert set(code) <= set("BCDFGHJKMNPRSTVWXYZ")
        assert codes.read(codes.spaced(code).lower()) == code


@pytest.mark.parametrize(
    "typed", ["KWRTBX", "kwrtbx", " kwr tbx ", "KWR-TBX", "k w r t b x", "ＫＷＲＴＢＸ", "kwr–tbx."]
)
def test_case_width_spaces_and_hyphens_do_not_matter(typed: str) -> None:
    assert codes.read(typed) == "KWRTBX"


@pytest.mark.parametrize("typed", ["", "KWRTB", "KWRTBXX", "KWRTB1", "KWRTBO", "한글여섯글자", "K" * 1000, "\0" * 6])
def test_what_cannot_be_a_code_is_none(typed: str) -> None:
    assert codes.read(typed) is None
