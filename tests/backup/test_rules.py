"""What makes a backup acceptable, and the order in which tables are loaded."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.backup import rules
from codehub.backup.model import Manifest, Member, TableRecord
from codehub.backup.rules import BadBackupError
from codehub.errors import StartError

USERS = TableRecord("users", ("name", "role"), 2)
MANIFEST = Manifest(
    format=1,
    codehub="0.1.0",
    schema=3,
    created_at=datetime(2030, 1, 1, tzinfo=UTC),
    members={"tables/users.copy": Member(10, "aa"), "secrets/signing-key": Member(5, "bb")},
    tables=(USERS,),
    sequences={"audit_log_id_seq": 7},
)


@given(st.permutations([("tokens", "users"), ("uses", "tokens"), ("uses", "users"), ("users", "users")]))
def test_a_table_comes_after_all_it_refers_to(references: list[tuple[str, str]]) -> None:
    order = rules.parents_first(["uses", "tokens", "users", "alone"], references)
    assert sorted(order) == ["alone", "tokens", "users", "uses"]
    assert order.index("users") < order.index("tokens") < order.index("uses")


def test_a_reference_to_a_table_that_is_not_kept_does_not_matter() -> None:
    assert rules.parents_first(["a"], [("a", "system_locks")]) == ["a"]


def test_tables_that_refer_to_each_other_in_a_ring_are_named() -> None:
    with pytest.raises(StartError, match=r"ring.*(hen → egg → hen|egg → hen → egg)"):
        rules.parents_first(["hen", "egg"], [("hen", "egg"), ("egg", "hen")])


def test_a_manifest_survives_being_written_and_read() -> None:
    assert rules.read_manifest(msgspec.json.encode(MANIFEST)) == MANIFEST


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no manifest"),
        (b"", "cannot be understood"),
        (b"[]", "cannot be understood"),
        (b'{"format": 1}', "cannot be understood"),
        (b'{"format": 3, "everything": "else"}', "install a newer CodeHub"),
    ],
)
def test_a_manifest_we_cannot_read_is_refused_with_the_reason(content: bytes | None, complaint: str) -> None:
    with pytest.raises(BadBackupError, match=complaint):
        rules.read_manifest(content)


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({}, "secrets/signing-key is missing"),
        ({"secrets/signing-key": Member(5, "bb")}, "tables/users.copy is missing"),
        ({**MANIFEST.members, "tables/users.copy": Member(10, "xx")}, "tables/users.copy is not what"),
        ({**MANIFEST.members, "tables/users.copy": Member(11, "aa")}, "tables/users.copy is not what"),
        ({**MANIFEST.members, "stowaway": Member(1, "cc")}, "stowaway is not what"),
    ],
)
def test_content_that_differs_from_the_manifest_is_refused(found: dict[str, Member], complaint: str) -> None:
    rules.check_members(MANIFEST, MANIFEST.members)
    with pytest.raises(BadBackupError, match=complaint):
        rules.check_members(MANIFEST, found)


def test_a_backup_of_a_newer_codehub_is_refused() -> None:
    rules.check_schema(MANIFEST, newest=3)
    rules.check_schema(MANIFEST, newest=4)
    with pytest.raises(BadBackupError, match="schema version 3, this one knows 2: install a newer CodeHub"):
        rules.check_schema(MANIFEST, newest=2)


@pytest.mark.parametrize(
    ("theirs", "ours", "stays"),
    [
        ("a", "a", True),
        ("a", "b, a", True),
        ("a,b", "b,a", True),
        ("a,b", "a", False),
        ("a", "b", False),
    ],
)
def test_people_stay_logged_in_when_every_key_of_the_backup_is_accepted(theirs: str, ours: str, stays: bool) -> None:
    assert rules.stays_logged_in(theirs, ours) is stays
