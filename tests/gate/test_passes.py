"""Passes and tickets: only ours, only for what they say, only for so long."""

from codehub.gate import passes
from codehub.gate.passes import Pass, Passes
from codehub.policy.model import Role

KEY = "a-key-that-is-long-enough-for-this-0123456789"
GIVEN = Pass("abc", "mina", Role.TEACHER, "session1", 2_000_000_000)


def test_a_pass_is_read_as_it_was_written() -> None:
    ours = Passes(KEY)
    assert ours.read(ours.write(GIVEN)) == GIVEN


def test_a_pass_that_was_touched_is_none() -> None:
    ours = Passes(KEY)
    written = ours.write(GIVEN)
    others = (
        "",
        "x",
        written[:-1],
        written.replace("mina", "root"),
        "abc.mina.teacher.session1.2000000000.",
        "." * 9,
        "é",
    )
    assert [ours.read(text) for text in others] == [None] * len(others)
    assert Passes(KEY + "x").read(written) is None


def test_passes_of_the_key_before_are_still_good() -> None:
    old = Passes(KEY).write(GIVEN)
    assert Passes(f"another-{KEY},{KEY}").read(old) == GIVEN


def test_a_ticket_ends_and_is_no_pass() -> None:
    ours = Passes(KEY)
    ticket = ours.ticket(GIVEN, passes.state_of("nonce"), now=1000.0)
    found = ours.read_ticket(ticket, now=1059.0)
    assert found
    assert (found.given, found.state) == (GIVEN, passes.state_of("nonce"))
    assert ours.read_ticket(ticket, now=1061.0) is None
    assert ours.read(ticket) is None
    assert ours.read_ticket(ours.write(GIVEN), now=0.0) is None
