"""Archives that browsers send: a course comes out of a good one, and out of a hostile one nothing but a reason."""

import contextlib
import gzip
import io
import pathlib
import random
import tarfile
import zipfile
from datetime import UTC, datetime

import pytest

from codehub.courses import archive, folder, source, tree
from codehub.courses.archive import ArchiveError
from codehub.courses.installation import SHIPPED, folders
from tests.courses.archives import COURSE, SESSION, SMALL, tarred, with_tar_entry, with_zip_link, zipped

LONG = f"01-one/files/{'/'.join(['a' * 30] * 5)}.txt"
PRACTICE = "---\n---\nDo it.\n"


def refused(data: bytes) -> tuple[str, str]:
    with pytest.raises(ArchiveError) as error:
        archive.read(data)
    return error.value.reason, error.value.where


def problems(data: bytes) -> list[str]:
    return [str(problem) for problem in folder.examine_tree(archive.read(data))[1]]


@pytest.mark.parametrize("top", ["", "small/", "a/b/small/", "./"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_course_is_found_where_its_author_packed_it(pack: object, top: str) -> None:
    found, said = folder.examine_tree(archive.read(pack(SMALL, top)))  # type: ignore[operator]
    assert (found and found.title, said) == ("Small", [])


@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_korean_names_come_out_of_every_kind_of_tar(style: int) -> None:
    names = [LONG] if style == tarfile.USTAR_FORMAT else [LONG, "01-one/files/인사말.txt"]
    read = archive.read(tarred({**SMALL, **dict.fromkeys(names, "x")}, "small/", style))
    assert set(names) <= set(read.paths)


@pytest.mark.parametrize("path", [*folders(pathlib.Path(str(SHIPPED)))], ids=lambda path: "/".join(path.parts[-2:]))
def test_a_shipped_course_comes_out_of_its_archive_as_it_is(path: pathlib.Path) -> None:
    course = folder.load(path)
    files = {name: text.encode() for name, text in folder.texts(course).items()}
    found, said = folder.examine_tree(archive.read(archive.zipped(files, "c", datetime(2026, 3, 2, tzinfo=UTC))))
    assert [problem for problem in said if problem.is_error] == []
    assert found is not None
    assert source.canonical(found) == source.canonical(course)


def test_what_computers_put_beside_files_is_no_part_of_a_course() -> None:
    beside = {"__MACOSX/small/._course.md": b"\0", "small/.DS_Store": b"\0", "small/01-one/._session.md": b"\0"}
    files = {f"small/{path}": text for path, text in SMALL.items()}
    assert problems(zipped({**files, **beside})) == []


def test_names_that_windows_in_korea_wrote_are_read() -> None:
    made = zipped({**SMALL, "01-one/practice.md": PRACTICE, "01-one/files/NAME.txt": "x"})
    korean = "인사".encode("cp949")
    assert "01-one/files/인사.txt" in archive.read(made.replace(b"NAME", korean)).paths


@pytest.mark.parametrize(
    "path", ["../outside.md", "/etc/passwd", "small/../../x", "C:/x.md", "01-one/files/../../../x"]
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_path_that_leads_out_is_refused(pack: object, path: str) -> None:
    reason, where = refused(pack({**SMALL, path: "x"}))  # type: ignore[operator]
    assert (reason, where) == ("outside", path)


def test_a_path_as_windows_writes_it_leads_nowhere_either() -> None:
    assert refused(zipped({**SMALL, "..\\..\\x": "x"})) == ("outside", "../../x")


def test_a_link_is_a_problem_of_its_file_and_what_it_leads_to_is_not_read() -> None:
    said, files = [f"01-one/files/secret:1: {tree.A_LINK}"], {**SMALL, "01-one/practice.md": PRACTICE}
    for made in (
        with_zip_link(files, "01-one/files/secret", "/etc/passwd"),
        with_tar_entry(
            {**SMALL, "01-one/practice.md": PRACTICE}, "01-one/files/secret", tarfile.SYMTYPE, "/etc/passwd"
        ),
        with_tar_entry(files, "01-one/files/secret", tarfile.LNKTYPE, "course.md"),
    ):
        assert problems(made) == said
    device = with_tar_entry(SMALL, "01-one/files/device", tarfile.CHRTYPE)
    assert f"01-one/files/device:1: {tree.NO_FILE}" in problems(device)


def test_a_bomb_is_given_up_when_too_much_has_come_out() -> None:
    many = {f"01-one/files/{n}": bytes(1_000_000) for n in range(12)}
    for made in (zipped({**SMALL, **many}), tarred({**SMALL, **many})):
        assert len(made) < 100_000
        assert refused(made) == ("large", "")
    endless = gzip.compress(gzip.decompress(tarred(SMALL)).rstrip(b"\0") + bytes(archive.MOST_UNPACKED))
    assert len(endless) < 200_000
    archive.read(endless)  # what comes after the end of a tar archive is not read
    one = zipped({**SMALL, "01-one/files/zeros": bytes(5_000_000)})
    assert problems(one)[0] == f"01-one/files/zeros:1: {tree.TOO_LONG}" or any(
        tree.TOO_LONG in p for p in problems(one)
    )


def test_a_file_that_says_it_is_small_or_endless_is_counted_as_it_comes_out() -> None:
    made = tarred({**SMALL, "x.txt": "x"})
    plain = bytearray(gzip.decompress(made))
    at = plain.index(b"x.txt\0")
    plain[at + 124 : at + 136] = b"77777777777\0"
    plain[at + 148 : at + 156] = b"        "
    plain[at + 148 : at + 156] = b"%06o\0 " % sum(plain[at : at + 512])
    assert refused(gzip.compress(bytes(plain)))[0] in {"broken", "large"}


def test_a_file_packed_in_another_way_is_refused_before_it_is_unpacked() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("course.md", COURSE)
    assert refused(made.getvalue()) == ("method", "course.md")


def test_so_many_files_are_no_course(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 100)
    many = {**SMALL, **{f"01-one/files/{n}": "" for n in range(100)}}
    for made in (zipped(many), tarred(many)):
        assert refused(made) == ("many", "")


def test_two_courses_in_one_archive_are_named() -> None:
    both = {f"{language}/{path}": text for language in ("en", "ko") for path, text in SMALL.items()}
    assert refused(zipped(both)) == ("several", "en/course.md, ko/course.md")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (zipped({}), "empty"),
        (zipped({"empty/": ""}), "empty"),
        (tarred({}), "empty"),
        (b"%PDF-1.7", "kind"),
        (b"PK\x03\x04 and nothing more", "broken"),
        (b"\x1f\x8b and nothing more", "broken"),
        (gzip.compress(b"a text, and no tar archive"), "broken"),
        (zipped(SMALL)[:-30], "broken"),
        (tarred(SMALL)[:-30], "broken"),
    ],
    ids=["none", "empty", "folder", "tar", "pdf", "zip", "gzip", "text", "cut-zip", "cut-tar"],
)
def test_what_is_no_archive_is_said_to_be_none(data: bytes, reason: str) -> None:
    assert refused(data)[0] == reason


def test_a_name_that_is_there_twice_or_is_file_and_folder_is_refused() -> None:
    made = io.BytesIO(zipped(SMALL))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(made, "a") as packed:
        packed.writestr("course.md", COURSE)
    assert refused(made.getvalue()) == ("twice", "course.md")
    assert refused(zipped({**SMALL, "01-one": "x"}))[0] == "twice"


def test_names_that_differ_only_in_case_and_texts_that_are_none_are_told_by_file_and_line() -> None:
    said = problems(zipped({**SMALL, "01-one/Check.md": "x"}))
    assert "01-one/check.md:1: differs from 'Check.md' only in case: on many machines that is one file" in said
    wrong = SESSION.encode() + "\n안녕".encode("cp949")
    assert any(
        p.startswith("01-one/session.md:10: is not UTF-8")
        for p in problems(zipped({**SMALL, "01-one/session.md": wrong}))
    )


def test_without_a_course_what_is_missing_is_said() -> None:
    said = problems(zipped({"small/01-one/session.md": SESSION}))
    assert "course.md:1: is missing: it has the course's key, title and language" in said


def test_whatever_is_damaged_is_a_reason_and_never_an_accident() -> None:
    chance = random.Random(1)
    for made in (zipped(SMALL), tarred(SMALL), gzip.decompress(tarred(SMALL))):
        for _ in range(600):
            data = bytearray(made)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(2, len(data))] = chance.randrange(256)
            packed = bytes(data) if bytes(data[:2]) in {b"PK", b"\x1f\x8b"} else gzip.compress(bytes(data))
            with contextlib.suppress(ArchiveError):
                folder.examine_tree(archive.read(packed))
