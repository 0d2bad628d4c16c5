"""Who needs an archive or a leftover, row by row."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from codehub.retention.rules import (
    Facts,
    Points,
    Rule,
    Stored,
    base_of,
    judge_archive,
    judge_container,
    judge_disk_item,
)
from codehub.runtimes.base import DiskItem
from codehub.workspaces.model import Health, Observed, Operation

THEN = datetime(2026, 3, 2, tzinfo=UTC)
WHOLE = frozenset({"home.tar.zst", "home.tar.zst.meta"})
HERE = Facts("w", "w/op9/1/home.tar.zst", None, "g", "op9", Operation.NONE, Health.OK, Observed.PENDING, None, False)
POINTS = Points(
    {f"w/op{n}/1/home.tar.zst": 10 - n for n in range(9, 4, -1)}, frozenset({"op9", "op8", "op7", "op6", "op5"})
)


def stored(op_id: str, names: frozenset[str] = WHOLE, epoch: int = 1) -> Stored:
    return Stored(f"w/{op_id}/{epoch}", names, 10)


@pytest.mark.parametrize(
    ("thing", "change", "orphan", "rule"),
    [
        (stored("op9"), {}, False, Rule.IN_USE),
        (stored("op5"), {"restore_from": "w/op5/1/home.tar.zst"}, False, Rule.IN_USE),
        (stored("op3", frozenset()), {"op_id": "op3"}, False, Rule.LAST_OPERATION),
        (stored("op4"), {"op_id": "op4"}, False, Rule.LAST_OPERATION),
        (stored("op7"), {}, False, Rule.RECENT_POINT),
        (stored("op6"), {}, True, Rule.NEWER_POINTS),
        (stored("op6"), {"health_status": Health.ERROR}, False, Rule.IN_ERROR),
        (stored("op3", frozenset({"home.tar.zst"})), {}, True, Rule.UNFINISHED),
        (stored("op3", frozenset({"home.tar.zst.meta"})), {}, True, Rule.UNFINISHED),
        (stored("op3", frozenset({"home.tar.zst.x.partial"})), {}, True, Rule.UNFINISHED),
        (stored("op3", frozenset({"home.tar.zst"})), {"health_status": Health.ERROR}, False, Rule.IN_ERROR),
        (stored("op8", epoch=2), {}, True, Rule.DUPLICATE),
        (stored("op3"), {}, False, Rule.UNLISTED_POINT),
        (
            stored("op9"),
            {"purge": True, "deleted_at": THEN, "observed_status": Observed.DELETED},
            True,
            Rule.WORKSPACE_PURGED,
        ),
        (stored("op9"), {"purge": True, "deleted_at": THEN}, False, Rule.IN_USE),
        (stored("op9"), {"deleted_at": THEN, "observed_status": Observed.DELETED}, False, Rule.IN_USE),
    ],
)
def test_an_archive_goes_only_when_nobody_may_need_it(
    thing: Stored, change: dict[str, Any], orphan: bool, rule: Rule
) -> None:
    judged = judge_archive(thing, replace(HERE, **change), POINTS, 3)
    assert (judged.orphan, judged.rule) == (orphan, rule), judged


def test_an_archive_of_no_workspace_is_an_orphan() -> None:
    assert judge_archive(stored("op9"), None, Points(), 3).orphan


@pytest.mark.parametrize(
    ("kind", "generation", "change", "orphan"),
    [
        ("volume", "g", {}, False),
        ("parked", "g", {}, False),
        ("volume", "op9-1", {}, False),
        ("volume", "late", {}, True),
        ("volume", "late", {"operation": Operation.RESTORING}, False),
        ("parked", "late", {"health_status": Health.ERROR}, False),
        ("rest", "", {}, False),
        ("unpacked", "old", {}, True),
        ("unpacked", "op9-2", {}, False),
        ("unpacked", "old", {"operation": Operation.RESTORING}, False),
        ("unpacked", "old", {"health_status": Health.ERROR}, False),
        ("parked", "old", {"purge": True, "deleted_at": THEN, "observed_status": Observed.DELETED}, True),
        ("parked", "g", {"deleted_at": THEN, "observed_status": Observed.DELETED}, False),
        (
            "volume",
            "old",
            {
                "purge": True,
                "deleted_at": THEN,
                "observed_status": Observed.DELETED,
                "operation": Operation.DELETING,
            },
            False,
        ),
    ],
)
def test_a_home_is_never_taken_and_a_leftover_only_when_no_restore_needs_it(
    kind: str, generation: str, change: dict[str, Any], orphan: bool
) -> None:
    assert judge_disk_item(DiskItem("w", generation, kind), replace(HERE, **change)).orphan is orphan


def test_what_lies_on_disk_of_no_workspace_is_an_orphan() -> None:
    assert judge_disk_item(DiskItem("w", "g", "volume"), None).orphan
    assert judge_container(None).orphan
    assert not judge_container(HERE).orphan
    assert judge_container(replace(HERE, observed_status=Observed.DELETED, deleted_at=THEN)).orphan


@pytest.mark.parametrize(
    ("key", "base"),
    [
        ("w/op/1/home.tar.zst", "w/op/1"),
        ("w/op/1/home.tar.zst.meta", "w/op/1"),
        ("w/op/1/home.tar.zst.abc.partial", "w/op/1"),
        ("w/op/one/home.tar.zst", None),
        ("w/op/1/notes.txt", None),
        ("W/op/1/home.tar.zst", None),
        ("w/op/1/deeper/home.tar.zst", None),
        ("photos/2026/1.jpg", None),
        (".codehub-platform", None),
    ],
)
def test_what_is_not_ours_is_none_of_our_business(key: str, base: str | None) -> None:
    found = base_of(key)
    assert (found[0] if found else None) == base
