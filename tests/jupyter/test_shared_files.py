"""The files behind the shared place: whose they are, in which coding a client gets them, what is never among them."""

import asyncio
import gzip
import pathlib

import pytest
import zstandard

from codehub.jupyter import identity
from codehub.jupyter.shared_files import SharedFiles, best_coding

SCRIPT = b"const answer = 42;\n" * 500


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A small JupyterLab's."""
    (tmp_path / "secret.js").write_bytes(b"beside it")
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text('<script src="{{page_config.fullStaticUrl}}/main.0a1b.js">')
    (static / "package.json").write_text('{"jupyterlab": {"version": "4.6.6"}}')
    (static / "main.0a1b.js").write_bytes(SCRIPT)
    (static / "9f.woff2").write_bytes(b"a font")
    (static / "build.log").write_bytes(b"not for pages")
    (static / "more").mkdir()
    return static


def test_an_identity_is_the_version_and_changes_with_the_page_and_with_the_files(folder: pathlib.Path) -> None:
    seen = {identity.of(folder)}
    (folder / "main.0a1b.js").write_bytes(SCRIPT + b" ")
    seen.add(identity.of(folder))
    (folder / "main.0a1b.js").rename(folder / "main.0a1c.js")
    seen.add(identity.of(folder))
    (folder / "index.html").write_text("another")
    seen.add(identity.of(folder))
    assert len(seen) == 4
    assert all(one.startswith("4.6.6-") for one in seen)


def test_a_folder_without_a_version_has_an_identity_too(folder: pathlib.Path) -> None:
    for text in ("{}", "not JSON", '{"jupyterlab": {"version": "4/../x"}}', '{"jupyterlab": 1}'):
        (folder / "package.json").write_text(text)
        assert identity.of(folder).startswith("0-")
    (folder / "package.json").unlink()
    assert identity.of(folder).startswith("0-")


def test_only_what_pages_use_is_there(folder: pathlib.Path) -> None:
    assert set(identity.files(folder)) == {"package.json", "main.0a1b.js", "9f.woff2"}
    shared = SharedFiles(folder)
    names = ["index.html", "build.log", "more", "", ".", "..", "../secret.js", "more/../main.0a1b.js", "/etc/passwd"]
    assert [shared.coding(name, "zstd") for name in names] == [None] * len(names)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("ZSTD ; q=0.1", "zstd"),
        ("*", "zstd"),
        ("*;q=0", "identity"),
        ("zstd;q=nonsense", "identity"),
        ("br", "identity"),
        ("", "identity"),
    ],
)
def test_a_client_gets_the_best_coding_that_it_accepts(accepted: str, coding: str) -> None:
    assert best_coding(accepted) == coding


async def test_every_coding_is_the_same_file_and_is_made_once(folder: pathlib.Path) -> None:
    shared = SharedFiles(folder)
    name = "main.0a1b.js"
    assert shared.ready(name, "zstd") is None
    first, second = await asyncio.gather(shared.body(name, "zstd"), shared.body(name, "zstd"))
    assert first is second is shared.ready(name, "zstd")
    assert first is not None
    assert zstandard.decompress(first) == SCRIPT
    zipped = await shared.body(name, "gzip")
    assert zipped is not None
    assert gzip.decompress(zipped) == SCRIPT
    assert await shared.body(name, "identity") == SCRIPT
    assert shared.coding("9f.woff2", "zstd, gzip") == "identity"  # it is compressed already


async def test_a_file_that_was_replaced_or_is_gone_is_not_served_under_the_old_identity(folder: pathlib.Path) -> None:
    shared = SharedFiles(folder)
    (folder / "main.0a1b.js").write_bytes(SCRIPT + b"changed")
    assert await shared.body("main.0a1b.js", "zstd") is None
    (folder / "main.0a1b.js").unlink()
    assert await shared.body("main.0a1b.js", "zstd") is None
    (folder / "main.0a1b.js").write_bytes(SCRIPT)
    assert await shared.body("main.0a1b.js", "zstd") is not None  # a failure is not kept


async def test_a_client_that_leaves_does_not_take_the_file_from_others(folder: pathlib.Path) -> None:
    shared = SharedFiles(folder)
    leaves = asyncio.create_task(shared.body("main.0a1b.js", "gzip"))
    await asyncio.sleep(0)
    leaves.cancel()
    assert await shared.body("main.0a1b.js", "gzip") is not None


def test_the_platforms_own_jupyterlab_is_found_and_its_page_names_a_file_of_it() -> None:
    folder = identity.platform_folder()
    assert folder is not None
    named = [name for name in identity.files(folder) if name in (folder / "index.html").read_text(encoding="utf-8")]
    assert any(name.startswith("main.") for name in named)
