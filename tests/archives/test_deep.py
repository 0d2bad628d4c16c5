"""Trees deeper than a path can be long: archives and memory grow with the number of entries, and all comes back."""

import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from codehub.archives import download, model, naming, process, service
from codehub.archives import format as tar
from codehub.archives.kept_links import KeptLinks
from codehub.archives.model import SourceChangedError, key_base
from codehub.archives.objects import open_store
from codehub.archives.pack import Packer
from codehub.runtimes import files
from tests.archives import trees
from tests.archives.conftest import NOW
from tests.archives.trees import Attributes, File, Folder, Holes, Node, OtherName, Symlink

LEVELS = 3_000
NAME = b"n" * 200
MEMORY = 24 * 1024 * 1024  # a dozen chunks of a megabyte are always held


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="codehub-deep-"))
    yield made
    files.remove_tree(made)


@pytest.fixture
def folder_in_memory() -> Iterator[Path]:
    """For thousands of folders: a disk takes its time to remove them."""
    made = Path(tempfile.mkdtemp(prefix="codehub-deep-", dir="/dev/shm"))
    yield made
    files.remove_tree(made)


def dig(path: Path, levels: int, name: bytes) -> None:
    """Folders in each other, with a file in each tenth: deeper than recursion and open files go."""
    path.mkdir()
    fd = os.open(path, trees.DIRECTORY)
    for number in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, trees.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
        if number % 10 == 0:
            note = os.open(b"note", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd)
            os.write(note, b"%d" % number)
            os.close(note)
    os.close(fd)


def dug(path: Path, name: bytes) -> list[tuple[int, list[str], bytes]]:
    """Of each folder, from the top down: its mode, what is in it, and what its file says."""
    found = []
    fd = os.open(path, trees.DIRECTORY)
    while True:
        names, text = sorted(os.listdir(fd)), b""  # noqa: PTH208 - by descriptor
        if "note" in names:
            note = os.open(b"note", os.O_RDONLY, dir_fd=fd)
            text = os.read(note, 99)
            os.close(note)
        found.append((stat.S_IMODE(os.fstat(fd).st_mode), names, text))
        if os.fsdecode(name) not in names:
            os.close(fd)
            return found
        below = os.open(name, trees.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below


def bottom(path: Path, levels: int, name: bytes) -> int:
    fd = os.open(path, trees.DIRECTORY)
    for _ in range(levels):
        below = os.open(name, trees.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


def nested(levels: int, content: dict[bytes, Node], attributes: Attributes = Attributes(0o755)) -> Folder:  # noqa: B008
    tree = Folder(content, attributes)
    for _ in range(levels):
        tree = Folder({b"d" * 200: tree}, attributes)
    return tree


def test_folders_in_each_other_make_an_archive_that_grows_with_their_number(folder_in_memory: Path) -> None:
    """Each with its whole path, these would be a gigabyte, and more in memory."""
    folder = folder_in_memory
    dig(folder / "home", LEVELS, NAME)
    (folder / "back").mkdir()
    packed = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
    compressed, size = [], 0

    def write(chunk: bytes) -> None:
        nonlocal size
        size += len(chunk)
        compressed.append(packed.compress(chunk))

    tracemalloc.start()
    Packer(write).run(os.open(folder / "home", trees.DIRECTORY))
    packing = tracemalloc.get_traced_memory()[1]
    compressed.append(packed.flush())
    tracemalloc.reset_peak()
    trees.unpack(b"".join(compressed), folder / "back")
    unpacking = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size < LEVELS * 6 * 1024
    assert packing < MEMORY
    assert unpacking < MEMORY
    assert dug(folder / "back", NAME) == dug(folder / "home", NAME)
    assert len(dug(folder / "back", NAME)) == LEVELS + 1
    files.remove_tree(folder / "back")
    assert not (folder / "back").exists()


def everything_deep(*, with_xattrs: bool) -> Folder:
    """Below what a path can say, one of everything; names of one file above and below in both orders."""
    xattrs = (("user.note", b"\0\xff"),) if with_xattrs else ()
    last = Folder({b"twice": OtherName(2), b"sparse twice": OtherName(3)})
    below: dict[bytes, Node] = {
        b"again": OtherName(0),  # the first name of this one is at the top
        b"a deep file": File(b"deep" * 300, Attributes(0o640, -5_500_000_001, (1000, 1001), xattrs)),
        b"first deep": File(b"has further names", Attributes(0o604, xattrs=xattrs)),
        b"holes": Holes(5_000_000, ((0, b"start"), (2_000_000, b"middle" * 1000))),
        b"large": File(bytes(range(256)) * 8_000),
        b"link": Symlink(b"../" * 80 + b"\xff"),
        b"\xff\xfe" + b"m" * 250: File(b"no text"),
        b"nothing": Folder({}, Attributes(0o1777, 1, (7, 8), xattrs)),
        b"side": nested(25, {b"third": OtherName(2), b"note": File(b"aside")}, Attributes(0o711, xattrs=xattrs)),
        b"zz": Folder({b"beside": OtherName(2)}),
    }
    return Folder(
        {
            b"top": File(b"x", Attributes(0o600)),
            b"h": nested(40, below),
            b"z": last,
            b"codehub-deep-0": Symlink(b"/tmp"),
        }
    )


def test_one_of_everything_below_the_longest_path_comes_back(folder: Path) -> None:
    trees.grow(folder / "home", everything_deep(with_xattrs=trees.has_xattrs(folder)))
    before = trees.picture(folder / "home")
    assert max(map(len, before)) > 3 * naming.LONGEST_PATH
    stream, packed = trees.pack(folder / "home")
    (folder / "back").mkdir()
    unpacked = trees.unpack(trees.squeeze(stream), folder / "back")
    assert trees.picture(folder / "back") == before
    assert packed.files == unpacked.files == len(before)
    assert stream == trees.pack(folder / "home")[0]


def test_a_hard_linked_symbolic_link_below_comes_back(folder: Path) -> None:
    trees.grow(folder / "home", nested(30, {b"a": Symlink(b"target")}))
    fd = bottom(folder / "home", 30, b"d" * 200)
    os.link(b"a", b"b", src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    os.link(b"a", folder / "home" / "z", src_dir_fd=fd, follow_symlinks=False)
    os.close(fd)
    (folder / "back").mkdir()
    trees.unpack(trees.squeeze(trees.pack(folder / "home")[0]), folder / "back")
    assert trees.picture(folder / "back") == trees.picture(folder / "home")
    assert (folder / "back" / "z").lstat().st_nlink == 3


async def test_a_deep_home_is_archived_restored_and_downloaded(folder: Path) -> None:
    """As the platform does it, by its workers; the download is for the owner, who has an ordinary tar."""
    trees.grow(folder / "home", everything_deep(with_xattrs=False))
    store = open_store(f"file://{folder}/objects")
    archived = await service.archive(process.from_folder(folder / "home"), store, key_base("w1", "op1", 1), now=NOW)
    (folder / "back").mkdir()
    await service.restore(store, archived.key, process.into_folder(folder / "back", None, trees.PLENTY), trees.PLENTY)
    assert trees.picture(folder / "back") == trees.picture(folder / "home")
    for number, pieces in enumerate(
        (
            download.of_home(process.packing(folder / "home", model.no_progress, live=True, gzip=True)),
            download.of_archive(store, archived.key, gzip=True),
        )
    ):
        target = folder / f"downloaded {number}"
        target.mkdir()
        compressed = b"".join([piece async for piece in pieces])
        done = subprocess.run(
            ["tar", "-xzpf", "-", "-C", str(target)], input=compressed, check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        look_at_what_tar_made(target, contents(folder / "home"))


def look_at_what_tar_made(target: Path, expected: list[bytes]) -> None:
    """Nothing is lost, links hold, and what is deep lies beside the rest, not where a link of the home leads."""
    assert contents(target) == expected
    assert (target / "codehub-deep-0").is_symlink()
    beside = target / "codehub-deep-1"
    assert beside.is_dir()
    first = next(beside.rglob("first deep"))
    assert first.stat().st_nlink == 4
    assert first.samefile(target / "z" / "twice")
    assert next(beside.rglob("again")).samefile(target / "top")


def contents(path: Path) -> list[bytes]:
    looks = [look for look in trees.picture(path).values() if isinstance(look, tuple)]
    return sorted(repr((look[3], look[5])).encode() for look in looks if look[0].startswith("0o1"))


def test_what_is_not_deeper_than_a_path_is_named_as_ever(folder: Path) -> None:
    """To the last byte that fits; and what shares a folder with something longer goes with it."""
    tree = nested(20, {b"f" * 74: File(b"fits")})  # 20 * 201 + 74 and a slash: 4095
    trees.grow(folder / "home", tree)
    assert b"CODEHUB" not in trees.pack(folder / "home")[0]
    trees.grow(folder / "longer", nested(20, {b"f" * 75: File(b"does not"), b"short": File(b"goes with it")}))
    stream, _ = trees.pack(folder / "longer")
    assert stream.count(b"CODEHUB.alias=") == 1
    with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
        names = [member.name for member in archive.getmembers()][-2:]
    assert names == ["./codehub-deep-0/0/" + "f" * 75, "./codehub-deep-0/0/short"]


def test_an_archive_with_whole_paths_of_any_depth_is_still_read(folder: Path) -> None:
    """As they were written before there were aliases: people's homes are stored like this."""
    levels = 300
    entries, path = [tar.describe(tar.Entry(b"./", tar.DIRECTORY, 0o755, 0, 0, 0, 0))], b""
    for number in range(levels):
        path += NAME + b"/"
        text = b"%d" % number
        entries.append(tar.describe(tar.Entry(path, tar.DIRECTORY, 0o755, 0, 0, 0, 0)))
        entries.append(tar.describe_file(path + b"note", 0o600, 0, 0, len(text), 0) + text + tar.padding(len(text)))
    entries.append(tar.describe(tar.Entry(b"z", tar.HARD_LINK, 0o600, 0, 0, 0, 0, path + b"note")))
    compressed = trees.squeeze(b"".join(entries) + tar.END)
    entries.clear()
    (folder / "back").mkdir()
    tracemalloc.start()
    trees.unpack(compressed, folder / "back")
    assert tracemalloc.get_traced_memory()[1] < MEMORY
    tracemalloc.stop()
    assert (folder / "back" / "z").read_bytes() == b"%d" % (levels - 1)
    (folder / "back" / "z").unlink()
    expected = [(0o755, sorted([NAME.decode(), "note"]), b"%d" % number) for number in range(levels)]
    assert dug(folder / "back", NAME)[1:-1] == expected[:-1]
    assert dug(folder / "back", NAME)[-1] == (0o755, ["note"], b"%d" % (levels - 1))


def test_an_ordinary_person_gets_closed_folders_back_however_deep(folder: Path) -> None:
    folder.chmod(0o777)
    shut = Attributes(0o000, 5)
    inner = Folder({b"first": File(b"z"), b"inner": Folder({b"f": File(b"y")}, shut)}, shut)
    tree = Folder({b"h": nested(100, {b"shut": inner}, Attributes(0o500)), b"z": Folder({b"link": OtherName(0)})})

    def work() -> bool:
        trees.grow(folder / "home", tree)
        (folder / "back").mkdir()
        trees.unpack(trees.squeeze(trees.pack(folder / "home")[0]), folder / "back")
        shutil.copy(folder / "back" / "z" / "link", folder / "seen")
        same = trees.picture(folder / "home") == trees.picture(folder / "back")
        files.remove_tree(folder / "back")
        return same

    assert trees.done_by_an_ordinary_person(work)
    assert (folder / "seen").read_bytes() == b"z"
    assert not (folder / "back").exists()


def test_a_change_in_the_depths_is_told_in_a_short_sentence(folder: Path) -> None:
    """The whole path would be more than the worker's report may be long."""
    dig(folder / "home", 200, b"\xff" * 200)
    fd = bottom(folder / "home", 200, b"\xff" * 200)
    large = os.open(b"large", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd)
    os.truncate(large, 4 * 1024 * 1024)
    os.pwrite(large, os.urandom(4 * 1024 * 1024), 0)

    def write(chunk: bytes) -> None:
        if b"/large" in chunk:
            os.truncate(large, 5)

    with pytest.raises(SourceChangedError) as raised:
        Packer(write).run(os.open(folder / "home", trees.DIRECTORY))
    assert "large" in str(raised.value)
    assert len(str(raised.value)) < 2_000
    os.close(large)
    os.close(fd)


def test_a_file_may_have_as_many_names_as_its_file_system_allows(folder: Path) -> None:
    """The name that we keep for the time being is one of them, and gives way to the last."""
    root = os.open(folder, trees.DIRECTORY)
    (folder / "first").write_bytes(b"x")
    kept = KeptLinks(os.dup(root))
    kept.keep(root, b"first", 0)
    names = 2
    try:
        while names < 65_000:  # where there is no limit, or a higher one
            os.link("first", folder / str(names))
            names += 1
    except OSError:
        pass
    kept.link(0, root, b"last")
    kept.remove()
    kept.close()
    os.close(root)
    assert (folder / "last").samefile(folder / "first")
    assert not [path for path in folder.iterdir() if path.name.startswith(".codehub")]
