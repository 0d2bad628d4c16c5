"""The profiles on what the real IDEs really sent: left alone they say nothing that counts; whatever is done counts.

The table in docs/activity.md is made from the same recordings, and compared with them here.
"""

import collections
import pathlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from codehub.activity.buffer import Buffer
from codehub.activity.model import COUNTS, Kind
from codehub.activity.profiles import PROFILES
from codehub.proxy.model import FrameObserver
from codehub.templates.model import ActivityProfile
from tests.activity import recordings

RECORDED = {"code-server": ActivityProfile.VSCODE, "jupyterlab": ActivityProfile.JUPYTER}
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "activity.md"
Scene = tuple[str, collections.Counter[Kind]]
# Nothing leaves the browser: it is counted when the notebook is saved, at the latest by itself within two minutes.
SILENT = {("jupyterlab", "one key typed in a cell")}


def scenes(name: str, piece: int | None = None) -> list[Scene]:
    """Replay: what was done, and what the profile made of what was sent meanwhile."""
    profile, found = PROFILES[RECORDED[name]], list[Scene]()
    followers: dict[tuple[int, bool], FrameObserver] = {}
    buffer = Buffer()

    def tell(kind: int) -> None:
        found[-1][1][Kind(kind)] += 1

    telling = SimpleNamespace(tell=tell)

    for at, what, *rest in recordings.load(recordings.FOLDER / f"{name}.jsonl.zst"):
        if what == "mark":
            found.append((rest[0], collections.Counter()))
        elif what == "request":
            path, _, query = rest[1].encode().partition(b"?")
            kind = profile.request(rest[0].encode(), path, query)
            tell(kind if kind is not Kind.BROWSING else listing(buffer, path, at))
        elif what == "open":
            path, _, query = rest[1].encode().partition(b"?")
            tell(Kind.OPENED)
            said, heard = profile.followers(path, query, telling, telling)
            followers |= {(rest[0], True): said, (rest[0], False): heard}
        elif what == "data":
            for part in pieces(rest[2], piece):
                followers[rest[0], rest[1]].follow(part)
    return found


def listing(buffer: Buffer, path: bytes, seconds: float) -> Kind:
    before = buffer.tally("w").counts[Kind.REFRESH]
    buffer.note_listing("w", path, seconds)
    return Kind.REFRESH if buffer.tally("w").counts[Kind.REFRESH] > before else Kind.BROWSING


def pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    for begin in range(0, len(data), size or len(data)):
        yield data[begin : begin + (size or len(data))]


def counted(seen: collections.Counter[Kind]) -> dict[str, int]:
    return {kind.label: n for kind, n in sorted(seen.items()) if COUNTS[kind]}


@pytest.mark.parametrize("name", RECORDED)
def test_a_tab_that_nobody_touches_says_nothing_that_counts(name: str) -> None:
    alone = [(done, seen) for done, seen in scenes(name) if done.startswith("nothing")]
    assert {done for done, _ in alone} == {"nothing, visible", "nothing, visible, things open", "nothing, hidden"}
    for done, seen in alone:
        assert counted(seen) == {}, done
        assert seen.total() > 0, done


@pytest.mark.parametrize("name", RECORDED)
def test_whatever_somebody_does_counts(name: str) -> None:
    done = {what: counted(seen) for what, seen in scenes(name) if what.startswith("do: ")}
    assert len(done) >= 8
    assert {(name, what.removeprefix("do: ")) for what, seen in done.items() if not seen} <= SILENT


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_it_does_not_matter_in_which_pieces_it_comes(size: int) -> None:
    assert scenes("jupyterlab", size) == scenes("jupyterlab")
    if size > 1:
        assert scenes("code-server", size) == scenes("code-server")


def table() -> str:
    """Action → what counted, by profile."""
    lines = ["| done in | what was done | counted as | ignored meanwhile |", "|---|---|---|---|"]
    for name in RECORDED:
        for what, seen in scenes(name):
            if what.startswith(("do: ", "nothing")):
                yes = ", ".join(counted(seen)) or "**nothing**"
                no = ", ".join(sorted(kind.label for kind in seen if not COUNTS[kind]))
                lines.append(f"| {name} | {what.removeprefix('do: ')} | {yes} | {no or '–'} |")
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_is_what_was_recorded() -> None:
    assert table() in DOCS.read_text(encoding="utf-8")
