"""Home directories as volumes: made, swapped in, parked and destroyed whole, each by its generation.

Called by `process` in threads. Every step is one rename between states that all are valid, so that a verb which was
killed anywhere is simply called again.
"""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from codehub import ids
from codehub.runtimes import files, records, uids
from codehub.runtimes.base import DiskItem, Found, RuntimeFailureError, UnreadableError, Volume
from codehub.runtimes.layout import Layout, WorkspacePaths
from codehub.templates.model import StarterFile

META = "meta.json"
# As they are written below; what a damaged file has in their place is not handed on.
Name = Annotated[str, msgspec.Meta(pattern=r"\A[!-~]{1,1000}\Z")]
Uid = Annotated[int, msgspec.Meta(gt=0, lt=2**32 - 1)]


@dataclass(frozen=True)
class Meta:
    generation: Name
    restored_from: Annotated[str, msgspec.Meta(pattern=r"\A[!-~]{0,1000}\Z")] | None = None  # "": from a backup
    uid: Uid | None = None  # None: the platform's own user

    def dumps(self) -> str:
        return json.dumps(vars(self))


def read(folder: pathlib.Path) -> Meta | None:
    try:
        return msgspec.convert(records.load(folder / META), Meta)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except records.UNREADABLE as e:
        files.raise_if_exhausted(e)
        raise UnreadableError(f"what its {folder.name} is cannot be read ({META}: {e})") from e


@contextlib.contextmanager
def held(paths: WorkspacePaths) -> Iterator[None]:
    """Hold a workspace that does not run: while it does, its shepherd has the lock, and waiting would not help."""
    running = records.read(paths)
    if running and running.alive:
        raise RuntimeFailureError("the workspace is running")
    with files.locked(paths.lock):
        yield


class Volumes:
    def __init__(self, layout: Layout, uid_base: int | None) -> None:
        self._layout = layout
        self._uid_base = uid_base  # None: not root, so everything is ours

    def look(self, ids_: Collection[str]) -> Found[Volume]:
        found: Found[Volume] = Found()
        for id_ in ids_:
            try:
                if volume := self._look(id_):
                    found[id_] = volume
            except UnreadableError as e:
                found.unreadable[id_] = e.detail
        return found

    def _look(self, workspace_id: str) -> Volume | None:
        paths = self._layout.of(workspace_id)
        return Volume.of(workspace_id, read(paths.volume), read(paths.parked))

    def meta(self, workspace_id: str) -> Meta:
        meta = read(self._layout.of(workspace_id).volume)
        if meta is None:
            raise RuntimeFailureError("the workspace has no volume")
        return meta

    def create(self, workspace_id: str, generation: str, starter: Collection[StarterFile] = ()) -> None:
        paths = self._layout.of(workspace_id)
        if read(paths.volume):
            return  # also when it runs
        with held(paths):
            if read(paths.volume):
                return
            fresh = paths.root / f"new-{secrets.token_hex(8)}"
            fresh.mkdir(mode=0o711)
            (fresh / "home").mkdir(mode=0o700)
            for file in starter:
                files.write_new(fresh / "home", file.path, file.data, 0o755 if file.executable else 0o644)
            self._swap_in(paths, fresh, generation, None)

    def place(self, workspace_id: str, generation: str, staged: pathlib.Path, restored_from: str) -> None:
        paths = self._layout.of(workspace_id)
        with held(paths):
            if there := read(paths.volume):
                if (there.generation, there.restored_from) == (generation, restored_from):
                    return
                raise RuntimeFailureError(f"there is a volume already, of generation {there.generation}")
            fresh = paths.placing(generation)
            fresh.mkdir(mode=0o711, exist_ok=True)
            if staged.is_dir():
                staged.chmod(0o700)  # a folder that its owner has closed cannot be moved by them, whom we may be
                staged.replace(fresh / "home")
            elif not (fresh / "home").is_dir():
                raise RuntimeFailureError("nothing was unpacked to swap in")
            self._swap_in(paths, fresh, generation, restored_from)
            for left in (*paths.root.glob("staging-*"), *paths.root.glob("placing-*")):
                files.remove_tree(left)  # of restores that were given up

    def _swap_in(self, paths: WorkspacePaths, fresh: pathlib.Path, generation: str, restored_from: str | None) -> None:
        paths.root.chmod(0o711)  # its user passes through to the home
        fresh.chmod(0o711)
        uid = None
        if self._uid_base is not None:
            uid = (fresh / "home").stat().st_uid or uids.allocate(self._layout.root / "counter", self._uid_base)
            files.give_tree(fresh / "home", uid, uid)
        (fresh / "home").chmod(0o700)
        files.write_whole(fresh / META, Meta(generation, restored_from, uid).dumps())
        _rename(fresh, paths.volume)
        self._sweep(paths)

    def staging(self, workspace_id: str, generation: str) -> pathlib.Path:
        """Only renames what is left over, and so does not block; the next verb removes it."""
        paths = self._layout.of(workspace_id)
        paths.root.mkdir(mode=0o711, exist_ok=True)
        for left in (paths.staging(generation), paths.placing(generation)):
            _discard(paths, left)
        staged = paths.staging(generation)
        staged.mkdir(mode=0o700)
        if self._uid_base is not None:  # whoever unpacks gives everything to this user at once
            uid = uids.allocate(self._layout.root / "counter", self._uid_base)
            os.chown(staged, uid, uid)
        return staged

    def home(self, workspace_id: str, generation: str) -> tuple[pathlib.Path, bool]:
        """Where this generation's files are, and whether it is parked."""
        paths = self._layout.of(workspace_id)
        for folder in (paths.volume, paths.parked):
            meta = read(folder)
            if meta and meta.generation == generation:
                return folder / "home", folder == paths.parked
        raise RuntimeFailureError(f"the workspace has no volume of generation {generation}")

    def is_there(self, workspace_id: str, generation: str, restored_from: str) -> bool:
        there = read(self._layout.of(workspace_id).volume)
        return there is not None and (there.generation, there.restored_from) == (generation, restored_from)

    def delete(self, workspace_id: str, generation: str) -> None:
        paths = self._layout.of(workspace_id)
        # A rest alone is what a deletion leaves that was cut short: it is finished, whatever its generation was.
        there = {item.generation for item in self._disk_items_of(workspace_id) if item.kind != "rest"}
        if not paths.root.exists() or (there and generation not in there):
            return
        with held(paths):
            for folder in (paths.staging(generation), paths.placing(generation)) if generation else ():
                _discard(paths, folder)
            self._destroy(paths, generation)

    def _destroy(self, paths: WorkspacePaths, generation: str) -> None:
        for folder in (paths.volume, paths.parked):
            if _generation(folder) == generation:
                _discard(paths, folder)
        self._sweep(paths)
        if not (paths.volume.exists() or paths.parked.exists()):
            self._remove_rest(paths)

    def disk_items(self, ids_: Collection[str] | None) -> list[DiskItem]:
        if ids_ is None:
            ids_ = [folder.name for folder in _listing(self._layout.homes) if ids.is_label(folder.name)]
        return [item for id_ in ids_ for item in self._disk_items_of(id_)]

    def _disk_items_of(self, workspace_id: str) -> list[DiskItem]:
        paths = self._layout.of(workspace_id)
        found = [
            DiskItem(workspace_id, generation, folder.name if generation else "unreadable")
            for folder in (paths.volume, paths.parked)
            if (generation := _generation(folder)) is not None
        ]
        names = [folder.name for folder in _listing(paths.root)]
        for name in names:
            kind, _, generation = name.partition("-")
            if kind in {"staging", "placing"}:
                found.append(DiskItem(workspace_id, generation, "unpacked"))
        if not found and names:
            found.append(DiskItem(workspace_id, "", "rest"))
        return found

    def park(self, workspace_id: str, generation: str) -> None:
        paths = self._layout.of(workspace_id)
        self._move(paths, generation, paths.volume, paths.parked, generation)

    def unpark(self, workspace_id: str, generation: str, made: str) -> None:
        paths = self._layout.of(workspace_id)
        self._move(paths, generation, paths.parked, paths.volume, made)

    def _move(
        self, paths: WorkspacePaths, generation: str, source: pathlib.Path, target: pathlib.Path, made: str
    ) -> None:
        """Renamed inside first and then as a whole: killed in between, it lies in the trash under its new name."""
        found = read(source)
        if found is None or found.generation not in {generation, made}:
            return
        with held(paths):
            meta = read(source)
            if meta is None or meta.generation not in {generation, made}:
                return
            if target.exists():
                raise RuntimeFailureError(f"there is a {target.name} already")
            if meta.generation != made:
                files.write_whole(source / META, dataclasses.replace(meta, generation=made).dumps())
            _rename(source, target)

    def _sweep(self, paths: WorkspacePaths) -> None:
        """What is of no use to anybody: discarded, or half made by a call that was killed (we hold the lock)."""
        for pattern in ("gone-*", "new-*"):
            for left in paths.root.glob(pattern):
                files.remove_tree(left)

    def _remove_rest(self, paths: WorkspacePaths) -> None:
        """After the last volume: logs and the folder itself, the lock last, because it is what keeps others away."""
        if any(paths.root.glob("staging-*")) or any(paths.root.glob("placing-*")):
            return  # a restore is under way
        for left in (paths.log, paths.etc, paths.exit_file, paths.usage_file, paths.socket_dir):
            files.remove_tree(left)
        paths.lock.unlink(missing_ok=True)
        try:
            paths.root.rmdir()
        except OSError as e:
            if e.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                raise


def _generation(folder: pathlib.Path) -> str | None:
    """Of the volume in this folder; empty where that cannot be read, None where there is none."""
    try:
        meta = read(folder)
    except UnreadableError:
        return ""
    return meta.generation if meta else None


def _discard(paths: WorkspacePaths, folder: pathlib.Path) -> None:
    try:
        folder.replace(paths.root / f"gone-{secrets.token_hex(8)}")
    except FileNotFoundError:
        return


def _listing(folder: pathlib.Path) -> list[pathlib.Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _rename(source: pathlib.Path, target: pathlib.Path) -> None:
    """Of a folder, to a name that is free: a volume is never empty, so the kernel refuses to replace one."""
    try:
        source.replace(target)
    except OSError as e:
        if e.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            raise RuntimeFailureError(f"there is a {target.name} already") from e
        raise
    files.sync_folder(target.parent)
