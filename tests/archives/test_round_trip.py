"""What is packed and unpacked again is the same tree, to the last bit of its metadata."""

import errno
import io
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.archives import naming, sparse
from codehub.archives import walk as walking
from codehub.archives.format import Entry as TarEntry
from codehub.archives.format import apply_pax, describe, describe_file, parse_head, parse_pax
from codehub.archives.model import SourceChangedError
from codehub.archives.pack import OutputError, Packer, open_home
from tests.archives import trees
from tests.archives.trees import Attributes, File, Folder, Holes, OtherName, Symlink

HAS_XATTRS = trees.has_xattrs(Path(tempfile.gettempdir()))


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="codehub-trees-"))
    yield made
    remove(made)


def remove(folder: Path) -> None:
    """Also what is closed to its owner, or deeper than a path can be long."""
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)


def there_and_back(folder: Path, tree: Folder) -> tuple[object, object]:
    """Packed and unpacked: how it looked before, and how it looks after."""
    # A home itself is open to its owner; what is inside need not be.
    mode = tree.attributes.mode if trees.ROOT else tree.attributes.mode | 0o700
    trees.grow(folder / "home", replace(tree, attributes=replace(tree.attributes, mode=mode)))
    before = trees.picture(folder / "home")
    stream, packed = trees.pack(folder / "home")
    (folder / "back").mkdir()
    unpacked = trees.unpack(trees.squeeze(stream), folder / "back")
    assert packed.files == unpacked.files == len(before)
    assert packed.bytes == unpacked.bytes
    return before, trees.picture(folder / "back")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees.trees(with_xattrs=HAS_XATTRS), longest_path=st.sampled_from([1, 30, 300, naming.LONGEST_PATH]))
def test_any_tree_comes_back_byte_for_byte(tree: Folder, longest_path: int) -> None:
    """Wherever names begin to be aliases: trees as deep as real paths are long would be too large to try many."""
    folder = Path(tempfile.mkdtemp(prefix="codehub-trees-"))
    try:
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(naming, "LONGEST_PATH", longest_path)
            before, after = there_and_back(folder, tree)
        assert after == before
    finally:
        remove(folder)


def test_one_of_everything_comes_back(folder: Path) -> None:
    before, after = there_and_back(folder, trees.rich(with_xattrs=HAS_XATTRS))
    assert after == before


def test_a_tree_deeper_than_open_files_and_longer_than_a_path_comes_back(folder: Path) -> None:
    tree = Folder({b"bottom": File(b"x"), b"link": OtherName(0)})
    for number in range(300):
        tree = Folder({b"level%d" % number: tree, b"beside": File(b"%d" % number)})
    assert walking.KEEP_OPEN < 300
    before, after = there_and_back(folder, tree)
    assert after == before


def test_holes_stay_holes(folder: Path) -> None:
    size = 3 * 1024**3
    trees.grow(folder / "home", Folder({b"disk": Holes(size, ((size - 5, b"end"), (1024**3, b"in the middle")))}))
    stream, _ = trees.pack(folder / "home")
    assert len(stream) < 100_000
    (folder / "back").mkdir()
    trees.unpack(trees.squeeze(stream), folder / "back")
    status = (folder / "back" / "disk").stat()
    assert status.st_size == size
    assert status.st_blocks * 512 < 100_000


def test_a_file_in_too_many_pieces_has_its_smallest_holes_filled(folder: Path) -> None:
    pieces = tuple((n * 16384, b"x" * 4096) for n in range(64))
    trees.grow(folder / "home", Folder({b"torn": Holes(64 * 16384, pieces)}))
    fd = os.open(folder / "home" / "torn", os.O_RDONLY)
    assert len(sparse.extents(fd, 64 * 16384)) == 2 * 64
    merged = sparse.extents(fd, 64 * 16384, most=10)
    os.close(fd)
    assert len(merged) <= 20
    assert merged[0] == 0
    assert merged[-2] + merged[-1] >= 63 * 16384 + 4096


def test_an_unchanged_tree_gives_the_same_bytes(folder: Path) -> None:
    trees.grow(folder / "home", trees.rich(with_xattrs=HAS_XATTRS))
    assert trees.pack(folder / "home")[0] == trees.pack(folder / "home")[0]


def test_a_directory_that_was_read_from_before_is_packed_whole(folder: Path) -> None:
    trees.grow(folder / "home", Folder({b"%d" % number: File(b"x") for number in range(50)}))
    fd = os.open(folder / "home", trees.DIRECTORY)
    with os.scandir(fd) as half_read:
        next(half_read)
        assert Packer(lambda _chunk: None).run(os.dup(fd)).files == 51
    os.close(fd)


def test_owners_are_mapped_to_the_one_who_is_given(folder: Path) -> None:
    given_owner = (12345, 54321) if trees.ROOT else (os.getuid(), os.getgid())
    trees.grow(folder / "home", trees.rich(with_xattrs=HAS_XATTRS))
    stream, _ = trees.pack(folder / "home")
    (folder / "back").mkdir()
    trees.unpack(trees.squeeze(stream), folder / "back", given_owner)
    looks = [look for look in trees.picture(folder / "back").values() if isinstance(look, tuple)]
    assert {look[1:3] for look in looks} == {given_owner}
    assert any(stat.S_IMODE(int(look[0], 8)) == 0o6755 for look in looks)  # given back after the owner


def test_sockets_pipes_and_devices_are_left_out_and_named(folder: Path) -> None:
    trees.grow(folder / "home", Folder({b"kept": File(b"x")}))
    os.mkfifo(folder / "home" / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "home" / "sock"))
        stream, packed = trees.pack(folder / "home")
    assert sorted(packed.left_out) == ["pipe pipe", "socket sock"]
    assert packed.left_out_count == 2
    (folder / "back").mkdir()
    trees.unpack(trees.squeeze(stream), folder / "back")
    assert [path.name for path in (folder / "back").iterdir()] == ["kept"]


def test_an_ordinary_person_can_archive_what_is_closed_to_themselves(folder: Path) -> None:
    folder.chmod(0o777)

    def work() -> bool:
        trees.grow(folder / "home", closed_tree())
        stream, packed = trees.pack(folder / "home")
        (folder / "back").mkdir()
        trees.unpack(trees.squeeze(stream), folder / "back")
        return packed.files == 8

    assert trees.done_by_an_ordinary_person(work)
    if trees.ROOT:
        assert trees.picture(folder / "home") == trees.picture(folder / "back")
    assert stat.S_IMODE((folder / "back" / "shut").stat().st_mode) == 0


def test_a_home_that_is_closed_to_its_owner_is_archived_and_stays_as_it_was(folder: Path) -> None:
    folder.chmod(0o777)
    home = folder / "home"

    def work() -> bool:
        trees.grow(home, closed_tree())
        for mode in (0o000, 0o600, 0o100, 0o300):
            home.chmod(mode)
            stream, packed = trees.pack(home)
            with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
                assert archive.getmembers()[0].mode == mode
            assert (packed.files, stat.S_IMODE(home.stat().st_mode)) == (8, mode)
        home.chmod(0o700)  # so that the folder can be removed
        return True

    assert trees.done_by_an_ordinary_person(work)


def test_an_attempt_that_fails_leaves_closed_folders_closed(folder: Path) -> None:
    """Else the next one would archive them as open."""
    folder.chmod(0o777)
    home = folder / "home"

    def work() -> bool:
        deep = Folder({b"in": Folder({b"noise": File(os.urandom(3_000_000))}, Attributes(0o000))}, Attributes(0o000))
        trees.grow(home, Folder({b"a": deep}, Attributes(0o700)))
        before = trees.picture(home)
        home.chmod(0o000)

        def breaks(_chunk: bytes) -> None:
            raise BrokenPipeError

        try:
            Packer(breaks).run(*open_home(str(home)))
        except OutputError:
            closed = stat.S_IMODE(home.stat().st_mode) == 0
            home.chmod(0o700)
            return closed and trees.picture(home) == before
        return False

    assert trees.done_by_an_ordinary_person(work)


def closed_tree() -> Folder:
    xattrs = (("user.note", b"x"),) if HAS_XATTRS else ()
    return Folder(
        {
            b"a unreadable": File(b"x" * 5000, Attributes(0o000, xattrs=xattrs)),
            b"a writable": File(b"y", Attributes(0o222)),
            b"shut": Folder({b"first": File(b"z"), b"inner": Folder({}, Attributes(0o000))}, Attributes(0o000, 5)),
            b"zoo": Folder({b"link": OtherName(2)}, Attributes(0o500)),
        }
    )


Change = Callable[[Path], object]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda home: (home / "b").unlink(), id="a file vanishes"),
        pytest.param(lambda home: (home / "new").write_text("x"), id="a file appears"),
        pytest.param(lambda home: (home / "a").write_bytes(b"longer" * 1_000_000), id="a file grows"),
        pytest.param(lambda home: (home / "a").write_bytes(b""), id="a file shrinks"),
        pytest.param(lambda home: (home / "sub").rename(home.parent / "moved"), id="a directory is moved away"),
    ],
)
def test_a_change_under_way_is_told_and_not_archived(folder: Path, change: Change) -> None:
    content = os.urandom(4 * 1024 * 1024)
    trees.grow(folder / "home", Folder({b"a": File(content), b"b": File(b"x"), b"sub": Folder({b"c": File(b"y")})}))
    changed = False

    def write(_chunk: bytes) -> None:
        nonlocal changed
        if not changed:
            changed = True
            change(folder / "home")

    with pytest.raises(SourceChangedError):
        Packer(write).run(os.open(folder / "home", trees.DIRECTORY))
    assert changed


def test_a_file_that_becomes_a_link_is_not_followed(folder: Path) -> None:
    trees.grow(folder / "home", Folder({b"a": File(os.urandom(2 * 1024 * 1024)), b"b": File(b"x")}))

    def write(_chunk: bytes) -> None:
        (folder / "home" / "b").unlink(missing_ok=True)
        (folder / "home" / "b").symlink_to("/etc/passwd")

    with pytest.raises(OSError, match="symbolic links") as raised:
        Packer(write).run(os.open(folder / "home", trees.DIRECTORY))
    assert raised.value.errno == errno.ELOOP


def test_gnu_tar_reads_what_we_write(folder: Path) -> None:
    trees.grow(folder / "home", trees.rich(with_xattrs=False, levels=15))  # GNU tar ends where paths end
    before = trees.picture(folder / "home")
    stream, _ = trees.pack(folder / "home")
    (folder / "back").mkdir()
    options = ["--numeric-owner", "--same-owner"] if trees.ROOT else []
    subprocess.run(["tar", "-xpf", "-", "-C", str(folder / "back"), *options], input=stream, check=True)
    assert trees.picture(folder / "back") == before


def test_python_reads_what_we_write(folder: Path) -> None:
    trees.grow(folder / "home", trees.rich(with_xattrs=HAS_XATTRS))
    stream, packed = trees.pack(folder / "home")
    with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
        members = archive.getmembers()
        content = archive.extractfile("notes.txt")
        assert content is not None
        assert content.read() == b"hello\n" * 1000
    assert len(members) == packed.files
    assert os.fsencode(next(m.name for m in members if m.name.endswith("not utf-8"))) == b"\xff\xfenot utf-8"


def test_system_zstd_reads_what_we_compress(folder: Path) -> None:
    """The whole file as the store keeps it, by the two programs every administrator has."""
    trees.grow(folder / "home", Folder({b"a": File(b"hello"), b"l": Symlink(b"a")}))
    stream, _ = trees.pack(folder / "home")
    compressed = trees.squeeze(stream)
    (folder / "home.tar.zst").write_bytes(compressed)
    if shutil.which("zstd"):
        listed = subprocess.run(["tar", "--zstd", "-tf", str(folder / "home.tar.zst")], check=True, capture_output=True)
        assert listed.stdout.split() == [b"./", b"a", b"l"]
    assert zstandard.ZstdDecompressor().decompress(compressed, max_output_size=len(stream)) == stream


@given(
    name=trees.names,
    target=st.binary(max_size=300),
    numbers=st.tuples(*[st.integers(0, 2**32 - 1)] * 2, st.integers(0, 2**62), st.integers(-(10**18), 10**19)),
    xattrs=st.dictionaries(st.sampled_from(["user.a", "user.=", "user.%3D%", "user.ü"]), st.binary(max_size=99)),
)
def test_any_entry_is_read_as_it_was_written(
    name: bytes, target: bytes, numbers: tuple[int, ...], xattrs: dict[str, bytes]
) -> None:
    uid, gid, size, mtime = numbers
    entry = TarEntry(name, b"2", 0o644, uid, gid, size, mtime, target.rstrip(b"\0"), xattrs)
    written = describe(entry)
    read = parse_head(written[-512:])
    if len(written) > 512:
        length = parse_head(written[:512]).size
        apply_pax(read, parse_pax(written[512 : 512 + length]))
    assert read == entry


@given(
    name=trees.names,
    mode=st.integers(0, 0o7777),
    ids=st.tuples(*[st.sampled_from([0, 1000, 0o7777777, 0o7777777 + 1])] * 2),
    size=st.sampled_from([0, 1, 511, 512, 10**6, 0o77777777777, 0o77777777777 + 1]),
    mtime=st.one_of(
        st.integers(10**18 - 5, 10**19 + 5),
        st.integers(-(10**18), 10**19),
        st.integers(0, 10).map(lambda n: n * 10**18),
    ),
)
def test_the_short_way_to_describe_a_file_writes_the_same_bytes(
    name: bytes, mode: int, ids: tuple[int, int], size: int, mtime: int
) -> None:
    entry = TarEntry(name, b"0", mode, *ids, size, mtime)
    assert describe_file(name, mode, *ids, size, mtime) == describe(entry)
