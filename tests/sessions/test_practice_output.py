"""What a check printed, as learners get to see it: the end of it, as plain text."""

import pytest

from codehub.sessions.practice_runner import shown_text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"\x1b[31mFAILED\x1b[0m test_card.py\n", "FAILED test_card.py\n"),
        (b"\x1b[1;38;5;196m\xe2\x9c\x97\x1b[m no\x1b[K", "\u2717 no"),
        (b"\x1b]0;a title\x07shown", "shown"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b(Bplain\x1b=", "plain"),
        (b"a[31m \x1b", "a[31m \x1b"),
        (b"\0\xff", "\ufffd\ufffd"),
    ],
)
def test_what_colours_a_terminal_is_not_shown(output: bytes, text: str) -> None:
    assert shown_text(output) == text


def test_output_that_was_cut_in_a_letter_begins_with_the_next_one() -> None:
    assert shown_text("가나".encode()[1:], cut=True) == "나"
    assert shown_text(b"\x80\x80\x80\x80\x80", cut=True) == "\ufffd" * 5
