"""Archives made to do harm: nothing outside of the directory is touched, and no quota is exceeded."""

import os
import shutil
import stat
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub.archives import format as tar
from codehub.archives import naming, sparse
from codehub.archives.model import ArchiveCorruptedError, ArchiveError, Quota, QuotaExceededError
from tests.archives import trees
from tests.archives.trees import File, Folder, OtherName, Symlink

SMALL = Quota(bytes=1_000_000, inodes=100)


def entry(name: bytes, kind: bytes = tar.FILE, content: bytes = b"", target: bytes = b"", **more: int) -> bytes:
    described = tar.Entry(name, kind, more.pop("mode", 0o644), 0, 0, len(content), 0, target)
    for key, value in more.items():
        setattr(described, key, value)
    return tar.describe(described) + content + tar.padding(len(content))


def archive(*entries: bytes) -> bytes:
    return entry(b"./", tar.DIRECTORY, mode=0o755) + b"".join(entries) + tar.END


def folder_entry(name: bytes) -> bytes:
    return entry(name + b"/", tar.DIRECTORY, mode=0o755)


def link(name: bytes, target: bytes) -> bytes:
    return entry(name, tar.SYMLINK, target=target)


def hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, tar.HARD_LINK, target=target)


ALIAS = b"./codehub-deep-0/0/"


def aliased(name: bytes, alias: bytes = ALIAS) -> bytes:
    return tar.pax(tar.record(tar.ALIAS, alias)) + folder_entry(name)


def numbered(number: int) -> bytes:
    return tar.pax(tar.record(tar.LINK, b"%d" % number))


def raw_map(text: bytes, realsize: int, content: bytes = b"") -> bytes:
    body = text + tar.padding(len(text)) + content
    return entry(b"sparse", content=body, real_size=realsize)


@pytest.fixture
def place() -> Iterator[Path]:
    """`inside` is where we unpack; everything around it is the canary."""
    made = Path(tempfile.mkdtemp(prefix="codehub-hostile-"))
    (made / "inside").mkdir()
    (made / "outside").mkdir()
    (made / "outside" / "file").write_text("untouched")
    yield made
    shutil.rmtree(made)


def around(place: Path) -> object:
    looks = trees.picture(place)
    return {name: look for name, look in looks.items() if not name.startswith(b"inside/") and name}


def used(place: Path) -> tuple[int, int]:
    looks = [(Path(base) / n).lstat() for base, ds, fs in os.walk(place / "inside") for n in ds + fs]
    return sum(look.st_size for look in looks if stat.S_ISREG(look.st_mode) and look.st_blocks), len(looks)


PAX_TWICE = tar.pax(tar.record(b"path", b"a")) + tar.pax(tar.record(b"path", b"b"))
CASES = {
    "an absolute path": archive(entry(b"/tmp/evil", content=b"x")),
    "a path by pax": archive(tar.pax(tar.record(b"path", b"../outside/evil")) + entry(b"a", content=b"x")),
    "dots upwards": archive(entry(b"../outside/evil", content=b"x")),
    "dots in the middle": archive(folder_entry(b"a"), entry(b"a/../../outside/evil", content=b"x")),
    "a name of two dots": archive(entry(b"..", content=b"x")),
    "a directory of two dots": archive(folder_entry(b".."), entry(b"../evil", content=b"x")),
    "a name of one dot": archive(entry(b".", content=b"x")),
    "an empty component": archive(folder_entry(b"a"), entry(b"a//b", content=b"x")),
    "an empty name": archive(entry(b"", content=b"x")),
    "a NUL in a name": archive(tar.pax(tar.record(b"path", b"a\0b")) + entry(b"a")),
    "a name too long": archive(entry(b"n" * 256)),
    "a write through a link": archive(link(b"out", b"../outside"), entry(b"out/evil", content=b"x")),
    "a write onto a link": archive(link(b"out", b"../outside/file"), entry(b"out", content=b"x")),
    "a directory onto a link": archive(link(b"out", b"../outside"), folder_entry(b"out"), entry(b"out/evil")),
    "an absolute link as a directory": archive(link(b"out", b"/"), folder_entry(b"out")),
    "a link below a link": archive(link(b"out", b"../outside"), link(b"out/evil", b"x")),
    "a hard link upwards": archive(hard_link(b"mine", b"../outside/file")),
    "a hard link to an absolute path": archive(hard_link(b"mine", b"/etc/passwd")),
    "a hard link through a link": archive(link(b"out", b"../outside"), hard_link(b"mine", b"out/file")),
    "a hard link to a directory": archive(folder_entry(b"a"), hard_link(b"b", b"a")),
    "a hard link to nothing": archive(hard_link(b"b", b"a")),
    "a hard link with dots": archive(folder_entry(b"a"), entry(b"a/f"), hard_link(b"b", b"a/./f")),
    "a hard link to itself": archive(hard_link(b"b", b"b")),
    "the same file twice": archive(entry(b"a", content=b"1"), entry(b"a", content=b"2")),
    "the same directory twice": archive(folder_entry(b"a"), entry(b"b"), folder_entry(b"a")),
    "a file as a directory": archive(entry(b"a", content=b"1"), entry(b"a/b", content=b"2")),
    "a directory that was left": archive(folder_entry(b"a"), folder_entry(b"b"), entry(b"a/late")),
    "a file in no directory": archive(entry(b"a/b", content=b"x")),
    "the root twice": archive(entry(b"./", tar.DIRECTORY)),
    "no root at all": entry(b"a", content=b"x") + tar.END,
    "a root that is a link": entry(b"./", tar.SYMLINK, target=b"../outside") + tar.END,
    "a character device": archive(entry(b"null", b"3")),
    "a block device": archive(entry(b"disk", b"4")),
    "a pipe": archive(entry(b"pipe", b"6")),
    "a GNU long name": archive(entry(b"././@LongLink", b"L", content=b"../evil\0")),
    "a global header": archive(entry(b"g", b"g", content=tar.record(b"path", b"../evil"))),
    "two extended headers": archive(PAX_TWICE + entry(b"a")),
    "an unknown record": archive(tar.pax(tar.record(b"SCHILY.fflags", b"x")) + entry(b"a")),
    "a privilege as an attribute": archive(
        tar.pax(tar.record(tar.XATTR + b"security.capability", b"\0" * 20)) + entry(b"a")
    ),
    "a record that is too long": archive(tar.pax(b"999 path=x\n") + entry(b"a")),
    "a record of no length": archive(tar.pax(b"0 path=x\n") + entry(b"a")),
    "a record without a number": archive(tar.pax(b"path=x\n") + entry(b"a")),
    "a negative size": archive(tar.pax(tar.record(b"size", b"-1")) + entry(b"a")),
    "an owner beyond all numbers": archive(tar.pax(tar.record(b"uid", b"9" * 19)) + entry(b"a")),
    "a time beyond all numbers": archive(tar.pax(tar.record(b"mtime", b"9" * 40)) + entry(b"a")),
    "a directory with content": archive(entry(b"a/", tar.DIRECTORY, content=b"x")),
    "a link with content": archive(entry(b"a", tar.SYMLINK, content=b"x", target=b"b")),
    "a link to nowhere at all": archive(entry(b"a", tar.SYMLINK)),
    "a NUL in a link": archive(tar.pax(tar.record(b"linkpath", b"a\0b")) + entry(b"a", tar.SYMLINK, target=b"x")),
    "overlapping pieces": archive(raw_map(b"2\n0\n10\n5\n10\n", 100, b"x" * 20)),
    "pieces outside of the file": archive(raw_map(b"1\n90\n20\n", 100, b"x" * 20)),
    "a map without end": archive(raw_map(b"1" * 5000, 100)),
    "a map of too many pieces": archive(raw_map(b"999999999\n" + b"0\n0\n" * 200, 100)),
    "a map with words": archive(raw_map(b"1\nzero\n1\n", 100, b"x")),
    "a map and another size": archive(raw_map(b"1\n0\n10\n", 100, b"x")),
    "an alias that leads upwards": archive(aliased(b"a", b"../outside/"), entry(b"../outside/evil", content=b"x")),
    "an absolute alias": archive(aliased(b"a", b"/tmp/"), entry(b"/tmp/evil", content=b"x")),
    "an alias that is another's path": archive(folder_entry(b"a"), aliased(b"a/b", b"a/"), entry(b"a/evil")),
    "an alias with dots": archive(aliased(b"a", b"./codehub-deep-0/../"), entry(b"./codehub-deep-0/../evil")),
    "an alias of no length": archive(aliased(b"a", b"./"), entry(b"./evil")),
    "an alias of a file": archive(tar.pax(tar.record(tar.ALIAS, ALIAS)) + entry(b"a")),
    "an alias of the root": tar.pax(tar.record(tar.ALIAS, ALIAS)) + archive(),
    "an alias that was never given": archive(folder_entry(b"a"), entry(ALIAS + b"evil")),
    "an alias that was left": archive(aliased(b"a"), folder_entry(b"b"), entry(ALIAS + b"late")),
    "the path of what has an alias": archive(aliased(b"a"), entry(b"a/evil")),
    "an alias onto a link": archive(link(b"a", b"../outside"), aliased(b"a"), entry(ALIAS + b"evil")),
    "a write through a link below an alias": archive(
        aliased(b"a"), link(ALIAS + b"out", b"../../outside"), entry(ALIAS + b"out/evil", content=b"x")
    ),
    "dots below an alias": archive(aliased(b"a"), entry(ALIAS + b"../../outside/evil", content=b"x")),
    "a name of two dots below an alias": archive(aliased(b"a"), folder_entry(ALIAS + b"..")),
    "an absolute path below an alias": archive(aliased(b"a"), entry(ALIAS + b"/tmp/evil", content=b"x")),
    "the alias itself": archive(aliased(b"a"), folder_entry(ALIAS[:-1])),
    "a hard link to an alias": archive(aliased(b"a"), entry(ALIAS + b"f"), hard_link(b"b", ALIAS + b"f")),
    "a number of a directory": archive(numbered(0) + folder_entry(b"a")),
    "a number that leaves one out": archive(numbered(1) + entry(b"a")),
    "a number that comes twice": archive(numbered(0) + entry(b"a"), numbered(0) + entry(b"b")),
    "a number that has not come": archive(entry(b"a"), numbered(0) + hard_link(b"b", b"a")),
    "a number beyond all numbers": archive(tar.pax(tar.record(tar.LINK, b"9" * 30)) + entry(b"a")),
    "a negative number": archive(tar.pax(tar.record(tar.LINK, b"-1")) + entry(b"a")),
    "no end": archive(entry(b"a"))[:-1024],
    "half an end": archive(entry(b"a"))[:-512],
    "something after the end": archive(entry(b"a")) + entry(b"b") + tar.END,
    "zeros without end": archive(entry(b"a")) + bytes(50_000_000),
    "nothing": b"",
    "not tar": os.urandom(5000),
    "a header with a wrong checksum": archive(b"x" + entry(b"abc")[1:]),
}


@pytest.mark.parametrize("stream", CASES.values(), ids=CASES.keys())
def test_a_hostile_archive_is_refused_and_touches_nothing_outside(place: Path, stream: bytes) -> None:
    before = around(place)
    with pytest.raises(ArchiveCorruptedError):
        trees.unpack(trees.squeeze(stream), place / "inside", quota=SMALL)
    assert around(place) == before


BOMBS = {
    "one large file": archive(entry(b"a", content=bytes(2_000_000))),
    "many files": archive(*(entry(b"f%d" % n) for n in range(200))),
    "many directories": archive(*(folder_entry(b"d%d" % n) for n in range(200))),
    "a deep tree": archive(*(folder_entry(b"/".join([b"d"] * n)) for n in range(1, 200))),
    "many names of one file": archive(entry(b"a"), *(hard_link(b"f%d" % n, b"a") for n in range(200))),
    "many files that fill it together": archive(*(entry(b"f%d" % n, content=bytes(50_000)) for n in range(50))),
    "a size that is not there": archive(entry(b"a", size=2**60)),
    "a sparse file of much data": archive(raw_map(b"1\n0\n2000000\n", 2_000_000, bytes(2_000_000))),
    "long links": archive(*(link(b"l%d" % n, b"x" * 4000) for n in range(90)), entry(b"a", content=bytes(700_000))),
}


@pytest.mark.parametrize("stream", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_stops_at_the_quota(place: Path, stream: bytes) -> None:
    with pytest.raises(QuotaExceededError):
        trees.unpack(trees.squeeze(stream), place / "inside", quota=SMALL)
    taken_bytes, taken_inodes = used(place)
    assert taken_bytes <= SMALL.bytes
    assert taken_inodes <= SMALL.inodes


def test_a_file_of_nothing_but_hole_may_be_larger_than_the_quota(place: Path) -> None:
    stream = archive(raw_map(b"1\n1000000000\n0\n", 10**9))
    trees.unpack(trees.squeeze(stream), place / "inside", quota=SMALL)
    assert (place / "inside" / "sparse").stat().st_size == 10**9


def test_an_archive_that_wants_much_memory_is_refused(place: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    greedy = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = greedy.compress(archive(entry(b"a"))) + greedy.flush()
    with pytest.raises(ArchiveCorruptedError, match="memory"):
        trees.unpack(frame, place / "inside")


def sample(place: Path) -> bytes:
    inner = Folder({b"\xffx": File(b"y" * 700), b"z": OtherName(1)})
    tree = Folder({b"a": File(b"hello" * 50), b"l": Symlink(b"a"), b"d": inner})
    trees.grow(place / "home", tree)
    return trees.pack(place / "home")[0]


def survives(place: Path, compressed: bytes) -> bool:
    """Unpack what may be anything: either it is refused, or a tree comes out. Nothing else may happen."""
    before = around(place)
    inside = place / "inside"
    try:
        trees.unpack(compressed, inside, quota=SMALL)
        accepted = True
    except (ArchiveError, OSError):  # a size that the file system does not have is the system's to refuse
        accepted = False
    assert around(place) == before
    shutil.rmtree(inside)
    inside.mkdir()
    return accepted


def test_every_shortened_archive_is_refused(place: Path) -> None:
    compressed = trees.squeeze(sample(place))
    assert not [end for end in range(len(compressed) - 4) if survives(place, compressed[:end])]


def test_every_flipped_bit_is_noticed(place: Path) -> None:
    compressed = trees.squeeze(sample(place))
    unharmed = trees.picture(place / "home")
    for position in range(len(compressed)):
        flipped = bytearray(compressed)
        flipped[position] ^= 1 << position % 8
        if survives(place, bytes(flipped)):
            # Some bits of a frame's header say nothing about its content; the checksum over the file knows them.
            trees.unpack(bytes(flipped), place / "inside")
            assert trees.picture(place / "inside") == unharmed
            shutil.rmtree(place / "inside")
            (place / "inside").mkdir()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_damage_to_the_tar_itself_does_harm(data: st.DataObject) -> None:
    place = Path(tempfile.mkdtemp(prefix="codehub-hostile-"))
    try:
        (place / "inside").mkdir()
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(naming, "LONGEST_PATH", data.draw(st.sampled_from([4, 4095])))  # with an alias, or without
            stream = bytearray(sample(place))
        for _ in range(data.draw(st.integers(1, 4))):
            position = data.draw(st.integers(0, len(stream) - 1))
            patch = data.draw(st.binary(min_size=1, max_size=20) | st.sampled_from([b"../../", b"/etc", b"7777777777"]))
            stream[position : position + len(patch)] = patch
            mend_checksums(stream)
        survives(place, trees.squeeze(bytes(stream)))
    finally:
        shutil.rmtree(place)


def mend_checksums(stream: bytearray) -> None:
    """So that damage gets past the first check."""
    for start in range(0, len(stream) - 511, 512):
        block = stream[start : start + 512]
        if block[257:262] == b"ustar":
            total = sum(block[:148]) + 8 * 32 + sum(block[156:])
            stream[start + 148 : start + 156] = b"%06o\0 " % total


def test_a_map_is_read_as_it_was_written() -> None:
    found = array("q", [0, 5, 4096, 10, 10**12, 3])
    written = sparse.write_map(found, 10**12 + 50)
    position = 0

    def take(count: int) -> bytes:
        nonlocal position
        position += count
        return written[position - count : position]

    read, taken = sparse.read_map(take, 10**12 + 50)
    assert list(read) == [*found, 10**12 + 50, 0]
    assert taken == len(written)
