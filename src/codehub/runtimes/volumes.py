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

from codehub import ids
from codehub.runtimes import files, records, uids
from codehub.runtimes.base import Found, Piece, RuntimeFailureError, UnreadableError, Volume
from codehub.runtimes.layout import Layout, Place

META = "meta.json"


@dataclass(frozen=True)
class Meta:
    generation: str
    restored_from: str | None = None
    uid: int | None = None  # None: the platform's own user

    def dumps(self) -> str:
        return json.dumps(vars(self))


def read(folder: pathlib.Path) -> Meta | None:
    try:
        return Meta(**json.loads((folder / META).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as e:
        files.raise_if_exhausted(e)
        raise UnreadableError(f"what its {folder.name} is cannot be read ({META}: {e})") from e


@contextlib.contextmanager
def held(place: Place) -> Iterator[None]:
    """Hold a workspace that does not run: while it does, its shepherd has the lock, and waiting would not help."""
    running = records.read(place)
    if running and running.alive:
        raise RuntimeFailureError("the workspace is running")
    with files.locked(place.lock):
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
        place = self._layout.of(workspace_id)
        here, parked = read(place.volume), read(place.parked)
        if here:
            return Volume(
                workspace_id,
                here.generation,
                here.restored_from,
                parked_generation=parked.generation if parked else None,
            )
        if parked:
            return Volume(workspace_id, parked.generation, parked.restored_from, parked=True)
        return None

    def meta(self, workspace_id: str) -> Meta:
        meta = read(self._layout.of(workspace_id).volume)
        if meta is None:
            raise RuntimeFailureError("the workspace has no volume")
        return meta

    def create(self, workspace_id: str, generation: str) -> None:
        place = self._layout.of(workspace_id)
        if read(place.volume):
            return  # also when it runs
        with held(place):
            if read(place.volume):
                return
            fresh = place.root / f"new-{secrets.token_hex(8)}"
            fresh.mkdir(mode=0o711)
            (fresh / "home").mkdir(mode=0o700)
            self._swap_in(place, fresh, generation, None)

    def place(self, workspace_id: str, generation: str, staged: pathlib.Path, restored_from: str) -> None:
        place = self._layout.of(workspace_id)
        with held(place):
            if there := read(place.volume):
                if (there.generation, there.restored_from) == (generation, restored_from):
                    return
                raise RuntimeFailureError(f"there is a volume already, of generation {there.generation}")
            fresh = place.placing(generation)
            fresh.mkdir(mode=0o711, exist_ok=True)
            if staged.is_dir():
                staged.replace(fresh / "home")
            elif not (fresh / "home").is_dir():
                raise RuntimeFailureError("nothing was unpacked to swap in")
            self._swap_in(place, fresh, generation, restored_from)
            for left in (*place.root.glob("staging-*"), *place.root.glob("placing-*")):
                files.remove_tree(left)  # of restores that were given up

    def _swap_in(self, place: Place, fresh: pathlib.Path, generation: str, restored_from: str | None) -> None:
        place.root.chmod(0o711)  # its user passes through to the home
        fresh.chmod(0o711)
        uid = None
        if self._uid_base is not None:
            uid = (fresh / "home").stat().st_uid or uids.allocate(self._layout.root / "counter", self._uid_base)
            files.give_tree(fresh / "home", uid, uid)
        (fresh / "home").chmod(0o700)
        files.write_whole(fresh / META, Meta(generation, restored_from, uid).dumps())
        _rename(fresh, place.volume)
        self._sweep(place)

    def staging(self, workspace_id: str, generation: str) -> pathlib.Path:
        """Only renames what is left over, and so does not block; the next verb removes it."""
        place = self._layout.of(workspace_id)
        place.root.mkdir(mode=0o711, exist_ok=True)
        for left in (place.staging(generation), place.placing(generation)):
            _discard(place, left)
        staged = place.staging(generation)
        staged.mkdir(mode=0o700)
        if self._uid_base is not None:  # whoever unpacks gives everything to this user at once
            uid = uids.allocate(self._layout.root / "counter", self._uid_base)
            os.chown(staged, uid, uid)
        return staged

    def home(self, workspace_id: str, generation: str) -> tuple[pathlib.Path, bool]:
        """Where this generation's files are, and whether it is parked."""
        place = self._layout.of(workspace_id)
        for folder in (place.volume, place.parked):
            meta = read(folder)
            if meta and meta.generation == generation:
                return folder / "home", folder == place.parked
        raise RuntimeFailureError(f"the workspace has no volume of generation {generation}")

    def is_there(self, workspace_id: str, generation: str, restored_from: str) -> bool:
        there = read(self._layout.of(workspace_id).volume)
        return there is not None and (there.generation, there.restored_from) == (generation, restored_from)

    def delete(self, workspace_id: str, generation: str) -> None:
        place = self._layout.of(workspace_id)
        # A rest alone is what a deletion leaves that was cut short: it is finished, whatever its generation was.
        there = {piece.generation for piece in self._pieces_of(workspace_id) if piece.kind != "rest"}
        if not place.root.exists() or (there and generation not in there):
            return
        with held(place):
            for folder in (place.staging(generation), place.placing(generation)) if generation else ():
                _discard(place, folder)
            self._destroy(place, generation)

    def _destroy(self, place: Place, generation: str) -> None:
        for folder in (place.volume, place.parked):
            if _generation(folder) == generation:
                _discard(place, folder)
        self._sweep(place)
        if not (place.volume.exists() or place.parked.exists()):
            self._remove_rest(place)

    def pieces(self, ids_: Collection[str] | None) -> list[Piece]:
        if ids_ is None:
            ids_ = [folder.name for folder in _listing(self._layout.homes) if ids.is_label(folder.name)]
        return [piece for id_ in ids_ for piece in self._pieces_of(id_)]

    def _pieces_of(self, workspace_id: str) -> list[Piece]:
        place = self._layout.of(workspace_id)
        found = [
            Piece(workspace_id, generation, folder.name if generation else "unreadable")
            for folder in (place.volume, place.parked)
            if (generation := _generation(folder)) is not None
        ]
        names = [folder.name for folder in _listing(place.root)]
        for name in names:
            kind, _, generation = name.partition("-")
            if kind in {"staging", "placing"}:
                found.append(Piece(workspace_id, generation, "unpacked"))
        if not found and names:
            found.append(Piece(workspace_id, "", "rest"))
        return found

    def park(self, workspace_id: str, generation: str) -> None:
        place = self._layout.of(workspace_id)
        self._move(place, generation, place.volume, place.parked, generation)

    def unpark(self, workspace_id: str, generation: str, made: str) -> None:
        place = self._layout.of(workspace_id)
        self._move(place, generation, place.parked, place.volume, made)

    def _move(self, place: Place, generation: str, source: pathlib.Path, target: pathlib.Path, made: str) -> None:
        """Renamed inside first and then as a whole: killed in between, it lies in the trash under its new name."""
        found = read(source)
        if found is None or found.generation not in {generation, made}:
            return
        with held(place):
            meta = read(source)
            if meta is None or meta.generation not in {generation, made}:
                return
            if target.exists():
                raise RuntimeFailureError(f"there is a {target.name} already")
            if meta.generation != made:
                files.write_whole(source / META, dataclasses.replace(meta, generation=made).dumps())
            _rename(source, target)

    def _sweep(self, place: Place) -> None:
        """What is of no use to anybody: discarded, or half made by a call that was killed (we hold the lock)."""
        for pattern in ("gone-*", "new-*"):
            for left in place.root.glob(pattern):
                files.remove_tree(left)

    def _remove_rest(self, place: Place) -> None:
        """After the last volume: logs and the folder itself, the lock last, because it is what keeps others away."""
        if any(place.root.glob("staging-*")) or any(place.root.glob("placing-*")):
            return  # a restore is under way
        for left in (place.log, place.etc, place.exit_file, place.usage_file, place.socket_dir):
            files.remove_tree(left)
        place.lock.unlink(missing_ok=True)
        try:
            place.root.rmdir()
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


def _discard(place: Place, folder: pathlib.Path) -> None:
    try:
        folder.replace(place.root / f"gone-{secrets.token_hex(8)}")
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
