"""Starter files of a template: which folders are read, which are refused and with what words."""

import os
import pathlib

import pytest

from codehub.errors import SettingsError
from codehub.templates import starter
from codehub.templates.loader import Templates
from codehub.templates.model import StarterFile

MINE = 'title = "T"\nstarter = "files"\n[process]\ncommand = ["true"]\n'


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of templates with one, `mine`, and its empty folder of starter files."""
    (tmp_path / "templates" / "files").mkdir(parents=True)
    (tmp_path / "templates" / "mine.toml").write_text(MINE)
    return tmp_path / "templates"


def read(folder: pathlib.Path) -> tuple[StarterFile, ...]:
    return Templates.load(folder, pathlib.Path("/nonexistent")).require("mine").starter_files


def refusal(folder: pathlib.Path) -> str:
    with pytest.raises(SettingsError) as refused:
        read(folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_files_are_read_with_their_folders_in_order_and_keep_whether_they_can_be_run(folder: pathlib.Path) -> None:
    (folder / "files" / "data").mkdir()
    (folder / "files" / "data" / "이름.csv").write_bytes(b"\x00\xff")
    (folder / "files" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "files" / "run.sh").chmod(0o755)
    (folder / "files" / ".hidden").write_text("")
    assert read(folder) == (
        StarterFile(".hidden", b""),
        StarterFile("data/이름.csv", b"\x00\xff"),
        StarterFile("run.sh", b"#!/bin/sh\n", executable=True),
    )


def test_an_empty_folder_is_no_mistake(folder: pathlib.Path) -> None:
    assert read(folder) == ()


def test_a_template_in_the_folder_is_a_file_of_its_own_and_no_template(folder: pathlib.Path) -> None:
    (folder / "files" / "other.toml").write_text("not a template")
    assert [file.path for file in read(folder)] == ["other.toml"]
    assert Templates.load(folder, pathlib.Path("/nonexistent")).find("other") is None


def test_a_folder_that_is_not_there_stops_the_start(folder: pathlib.Path) -> None:
    (folder / "files").rmdir()
    assert f"{folder}/mine.toml: starter: {folder}/files cannot be read: No such file or directory" in refusal(folder)


@pytest.mark.parametrize("name", ["link", "folder", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(folder: pathlib.Path, name: str) -> None:
    match name:
        case "link":
            (folder / "files" / name).symlink_to("/etc/passwd")
        case "folder":
            (folder / "files" / name).symlink_to("/etc")
        case _:
            os.mkfifo(folder / "files" / name)
    assert f"mine.toml: starter: {name} is neither a file nor a folder" in refusal(folder)


def test_the_folder_itself_is_no_link_either(folder: pathlib.Path) -> None:
    (folder / "files").rename(folder / "elsewhere")
    (folder / "files").symlink_to(folder / "elsewhere")
    assert "starter: files is not a folder" in refusal(folder)


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "/etc", "a b", "-x"])
def test_only_a_folder_beside_the_file_can_be_named(folder: pathlib.Path, name: str) -> None:
    (folder / "mine.toml").write_text(MINE.replace('"files"', f'"{name}"'))
    assert "mine.toml: starter: must be the name of a folder beside this file" in refusal(folder)


def test_too_many_files_and_too_much_are_refused(folder: pathlib.Path) -> None:
    for number in range(starter.MOST_FILES):
        (folder / "files" / f"{number:03}").write_bytes(b"")
    assert len(read(folder)) == starter.MOST_FILES
    (folder / "files" / "one-more").write_bytes(b"")
    assert f"starter: files has more than {starter.MOST_FILES} files" in refusal(folder)
    (folder / "files" / "one-more").unlink()
    (folder / "files" / "000").write_bytes(bytes(starter.MOST_BYTES))
    assert len(read(folder)[0].data) == starter.MOST_BYTES
    (folder / "files" / "001").write_bytes(b"!")
    assert "starter: files has more than 4 MB" in refusal(folder)


def test_folders_are_not_deeper_than_anybody_needs(folder: pathlib.Path) -> None:
    deep = folder / "files" / pathlib.Path(*"abcdefghijk")
    deep.mkdir(parents=True)
    assert "is more than 10 folders deep" in refusal(folder)


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe"])
def test_names_that_cannot_be_shown_are_refused(folder: pathlib.Path, name: bytes) -> None:
    pathlib.Path(os.fsdecode(os.fsencode(folder / "files") + b"/" + name)).write_text("")
    assert "cannot be the name of a starter file" in refusal(folder)
