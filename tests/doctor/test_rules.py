"""Where the doctor's limits are."""

import pytest

from codehub.doctor import reasons, rules
from codehub.doctor.model import Level

MIB, GIB = rules.MIB, rules.GIB


@pytest.mark.parametrize(
    ("free", "total", "level"),
    [
        (0, 100 * GIB, Level.FAIL),
        (200 * MIB - 1, 100 * GIB, Level.FAIL),
        (200 * MIB, 100 * GIB, Level.WARN),
        (2 * GIB - 1, 10 * GIB, Level.WARN),
        (2 * GIB, 10 * GIB, Level.OK),
        (49 * GIB, 1000 * GIB, Level.WARN),
        (50 * GIB, 1000 * GIB, Level.OK),
        (0, 0, Level.FAIL),
    ],
)
def test_disk_space_is_judged_by_size_and_share(free: int, total: int, level: Level) -> None:
    assert rules.disk_level(free, total) is level


@pytest.mark.parametrize(("number", "new_enough"), [(90624, False), (130014, False), (140000, True), (180004, True)])
def test_postgresql_14_is_the_oldest(number: int, new_enough: bool) -> None:
    assert rules.postgres_is_new_enough(number) is new_enough


@pytest.mark.parametrize(
    ("version", "new_enough"), [("5.0.7", False), ("6.0.16", False), ("6.2.0", True), ("7.2.4", True), ("10.0", True)]
)
def test_redis_6_2_is_the_oldest(version: str, new_enough: bool) -> None:
    assert rules.redis_is_new_enough(version) is new_enough


@pytest.mark.parametrize(
    ("url", "garbled"),
    [
        ("postgresql://u:p@host/db", False),
        ("postgresql://u:p%2Fw@host/db", False),
        ("postgresql:///db?host=/run/pg&user=a@b", False),
        ("postgresql://u:12/34@host/db", True),
        ("redis://u:12#34@host/0", True),
    ],
)
def test_a_password_that_breaks_its_url_is_noticed_before_a_part_of_it_is_shown(url: str, garbled: bool) -> None:
    assert reasons.is_garbled(url) is garbled


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@db.example:5433/x", "db.example:5433"),
        ("postgresql://u:secret@db.example/x?password=secret", "db.example"),
        ("postgresql://u:secret@/x?host=/run/pg", "a local socket"),
        ("postgresql://u@host:secret/x", "that address"),
    ],
)
def test_of_a_url_only_host_and_port_are_shown(url: str, shown: str) -> None:
    assert reasons.where(url) == shown
