"""The waiting room's tables in memory: what each of its named statements does with the rows of one event.

`store` runs on it as it is written; a test compares each statement with PostgreSQL. `machine` hands it to requests.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from codehub.waiting_room.store import sql

Row = dict[str, Any]
Frozen = tuple[Any, ...]
NAMES = {sql._sql[name]: name for name in sql.names()}
PLACED = ("reserved", "held")
COLUMNS = (
    *("event_id", "pid", "person", "name", "state", "seq", "offer_id", "gone_seq", "noted", "offered_at", "expires_at"),
    *("workspace_id", "run_id", "changed_at"),
)


class Rows:
    def __init__(self, event: Row, places: dict[str, Row] | None = None, offers: int = 0) -> None:
        self.event = event
        self.places = {} if places is None else places
        self.offers = offers

    def freeze(self) -> Frozen:
        event = tuple(self.event.items())
        places = tuple((pid, tuple(row.items())) for pid, row in sorted(self.places.items()))
        return event, places, self.offers

    @classmethod
    def thaw(cls, frozen: Frozen) -> "Rows":
        event, places, offers = frozen
        return cls(dict(event), {pid: dict(row) for pid, row in places}, offers)

    def run(self, statement: str, args: tuple[Any, ...], now: datetime) -> list[Row]:
        """The rows that it returns; of an UPDATE without RETURNING, none."""
        act: Callable[..., list[Row] | None] = getattr(self, "_" + NAMES[statement])
        if NAMES[statement] in {"clock", "age"}:
            return act(now, *args) or []
        return [dict(row) for row in act(*args) or []]

    # --- the event

    def _find_event(self, id_: str) -> list[Row]:
        return [self.event] if self.event["id"] == id_ else []

    _lock_event = _find_event

    def _watched(self, after: str, _limit: int) -> list[Row]:
        if self.event["activity"] == "idle" or self.event["id"] <= after:
            return []
        states = [row["state"] for row in self.places.values()]
        return [{**self.event, "offered": states.count("offered"), "placed": sum(s in PLACED for s in states)}]

    def _watch(self, _id: str) -> None:
        self.event["activity"] = "busy"

    def _rest(self, _id: str, before: str, after: str, epoch: int) -> list[Row]:
        open_ = any(row["state"] == "offered" or not row["noted"] for row in self.places.values())
        if self.event["activity"] != before or self.event["epoch"] != epoch or open_:
            return []
        self.event["activity"] = str(after)
        self.event["lost_line"] = self.event["lost_line"] and after != "idle"
        return [{"?column?": 1}]

    def _draw(self, _id: str) -> None:
        self.event["drawn"] = True

    def _set_next_grant(self, _id: str, at: datetime) -> None:
        self.event["next_grant_at"] = at

    def _reopen(self, _id: str, epoch: int, at: datetime, lost_line: bool) -> None:
        self.event.update(epoch=epoch, opened_at=at, lost_line=lost_line)

    def _forget_noted(self, _id: str, gone_since: datetime) -> None:
        for row in self.places.values():
            if row["state"] != "none" or row["changed_at"] >= gone_since:
                row.update(noted=False, version=row["version"] + 1)

    def _nudge(self) -> None: ...

    def _clock(self, now: datetime) -> list[Row]:
        return [{"clock": now}]

    def _age(self, now: datetime, since: datetime) -> list[Row]:
        return [{"age": (now - since).total_seconds()}]

    # --- places

    def _find_place(self, _id: str, pid: str) -> list[Row]:
        return [self.places[pid]] if pid in self.places else []

    def _find_places(self, _id: str, pids: list[str]) -> list[Row]:
        return [self.places[pid] for pid in sorted(set(pids)) if pid in self.places]

    def _place_of_person(self, _id: str, person: str) -> list[Row]:
        return [row for row in self.places.values() if row["person"] == person and row["state"] in PLACED]

    def _save_place(self, *values: Any) -> list[Row]:
        given = dict(zip(COLUMNS, values, strict=True))
        given["state"] = str(given["state"])
        before = self.places.get(given["pid"])
        if before:
            given.update(person=given["person"] or before["person"], name=given["name"] or before["name"])
        self.places[given["pid"]] = {**given, "version": before["version"] + 1 if before else 1}
        return [self.places[given["pid"]]]

    def _new_offer(self) -> list[Row]:
        self.offers += 1
        return [{"nextval": self.offers}]

    def _note(self, _id: str, pids: list[str], versions: list[int], epoch: int) -> None:
        for pid, version in zip(pids, versions, strict=True):
            row = self.places.get(pid)
            if row and row["version"] == version and self.event["epoch"] == epoch:
                row["noted"] = True

    def _unnoted(self, _id: str, limit: int) -> list[Row]:
        found = [row for row in self.places.values() if not row["noted"]]
        return sorted(found, key=lambda row: row["changed_at"])[:limit]

    def _count_places(self, _id: str) -> list[Row]:
        states = [row["state"] for row in self.places.values()]
        return [{state: states.count(state) for state in ("offered", "reserved", "held")}]

    def _taken(self, _id: str) -> list[Row]:
        return [{"offered_at": row["offered_at"]} for row in self.places.values() if row["state"] != "none"]
