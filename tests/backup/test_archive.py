"""The file is whole or refused: every truncation, every flipped byte, and what else may lie under its name."""

import io
import pathlib
import stat
import tarfile
from datetime import UTC, datetime

import msgspec
import pytest
import zstandard

from codehub.backup import archive, restore
from codehub.backup.model import Manifest
from codehub.backup.progress import Meter
from codehub.backup.rules import BadBackupError
from codehub.errors import StartError

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def write(target: pathlib.Path, content: bytes = b"some content\n", *, force: bool = False, schema: int = 1) -> None:
    with archive.writing(target, NOW, force=force) as writer:
        writer.add_bytes("secrets/signing-key", content)
        manifest = Manifest(1, "0.1.0", schema, NOW, dict(writer.members), (), {})
        writer.add_bytes(archive.MANIFEST, msgspec.json.encode(manifest))


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_is_readable_by_its_owner_alone_and_leaves_nothing_beside_it(file: pathlib.Path) -> None:
    write(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(file.parent) == [file.name]
    assert archive.verify(file).members["secrets/signing-key"].bytes == 13


def test_a_backup_cut_short_anywhere_is_refused(file: pathlib.Path) -> None:
    write(file)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(BadBackupError):
            archive.verify(file)


def test_a_backup_with_any_byte_changed_is_refused(file: pathlib.Path) -> None:
    write(file)
    whole = file.read_bytes()
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(BadBackupError):
            archive.verify(file)


def test_a_backup_with_something_behind_it_is_refused(file: pathlib.Path) -> None:
    write(file)
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(BadBackupError):
        archive.verify(file)


def foreign_tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("holiday.jpg"))
    return zstandard.compress(stream.getvalue())


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\0" * 100, foreign_tar()])
def test_a_file_that_is_something_else_is_refused_in_one_line(file: pathlib.Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BadBackupError) as caught:
        restore.check(file, Meter())
    assert "not a CodeHub backup" in caught.value.detail
    assert str(file) in caught.value.detail
    assert "\n" not in caught.value.detail


def test_a_backup_of_a_newer_schema_is_refused_before_anything_is_touched(file: pathlib.Path) -> None:
    write(file, schema=9999)
    with pytest.raises(BadBackupError, match="install a newer CodeHub"):
        restore.check(file, Meter())


@pytest.mark.parametrize("name", ["missing.codehub", "."])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(StartError, match="cannot read"):
        restore.check(tmp_path / name, Meter())


def test_an_existing_file_is_kept_unless_told_otherwise(file: pathlib.Path) -> None:
    file.write_text("precious")
    with pytest.raises(StartError, match="--force"):
        write(file)
    assert file.read_text() == "precious"
    write(file, force=True)
    archive.verify(file)


def test_a_file_that_appears_meanwhile_is_kept_too(file: pathlib.Path) -> None:
    with pytest.raises(StartError, match="--force"), archive.writing(file, NOW, force=False) as writer:
        writer.add_bytes("a", b"b")
        file.write_text("precious")
    assert file.read_text() == "precious"
    assert names(file.parent) == [file.name]


def test_a_backup_that_breaks_off_leaves_the_old_file_and_nothing_else(file: pathlib.Path) -> None:
    write(file)
    before = file.read_bytes()
    with pytest.raises(ZeroDivisionError), archive.writing(file, NOW, force=True) as writer:
        writer.add_bytes("a", b"b" * 100_000)
        raise ZeroDivisionError
    assert file.read_bytes() == before
    assert names(file.parent) == [file.name]


def test_a_folder_that_is_missing_is_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(StartError, match=r"cannot write .*: No such file or directory"):
        write(tmp_path / "nowhere" / "file")


def test_whoever_reads_zstandard_and_tar_can_look_inside(file: pathlib.Path) -> None:
    """The seal is invisible to them."""
    write(file)
    with file.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as frame:
        content = io.BytesIO(frame.read())
    with tarfile.open(fileobj=content) as tar:
        assert tar.getnames() == ["secrets/signing-key", "manifest.json"]
