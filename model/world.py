"""The modelled machine and object store: what each verb does to what there is. Pure; `explore` lets time and faults in.

It follows `runtimes.volumes` (a volume is moved or destroyed only by its generation and never under a running IDE) and
`archives.objects` (an object is created once and never replaced). What a home or an archive holds is a version: `EMPTY`
for a new home, `v1`, `v2` … for what the person made of it, `GARBAGE` for what a store kept wrongly.
"""

from typing import Any, NamedTuple

EMPTY, GARBAGE, HALF = "empty", "garbage", "half"
TORN = "torn"  # what a look finds that cannot be read
ID = "w"


class Volume(NamedTuple):
    generation: str
    restored_from: str | None
    version: str


class Archive(NamedTuple):
    """One key of the object store: its data and its meta, each the version it speaks of, or None when not there."""

    key: str
    data: str | None = None
    meta: str | None = None


class World(NamedTuple):
    container: bool = False
    volume: Volume | None = None
    parked: Volume | None = None
    staged: tuple[tuple[str, str], ...] = ()  # directory, what was unpacked there
    archives: tuple[Archive, ...] = ()

    def archive(self, key: str) -> Archive:
        return next((a for a in self.archives if a.key == key), Archive(key))

    def holds(self, key: str | None) -> str | None:
        """The version that a committed archive gives back."""
        found = self.archive(key) if key else None
        return found.data if found and found.data and found.data == found.meta else None


class RefusedError(Exception):
    """The verb does not do it; the argument is how it says so."""


FAILED, START_FAILED, EXISTS, MISSING, AWAY = "failed", "start failed", "exists", "missing", "away"


def _still(world: World) -> None:
    if world.container:
        raise RefusedError(FAILED)


def _with_archive(world: World, changed: Archive) -> World:
    others = [a for a in world.archives if a.key != changed.key]
    kept = [changed] if changed.data or changed.meta else []
    return world._replace(archives=tuple(sorted([*others, *kept])))


class Verbs:
    """Each verb: (world, its arguments) → (what it answers, the world afterwards)."""

    # --- looking

    @staticmethod
    def containers(world: World) -> tuple[Any, World]:
        return world.container, world

    @staticmethod
    def volumes(world: World) -> tuple[Any, World]:
        if world.volume:
            return (*world.volume[:2], False, world.parked and world.parked.generation), world
        return (*world.parked[:2], True, None) if world.parked else None, world

    @staticmethod
    def container(world: World) -> tuple[Any, World]:
        return world.container, world

    @staticmethod
    def pack(world: World, generation: str) -> tuple[Any, World]:
        found = next((v for v in (world.volume, world.parked) if v and v.generation == generation), None)
        if found is None:
            raise RefusedError(FAILED)
        return found.version, world

    # --- volumes

    @staticmethod
    def create_volume(world: World, generation: str) -> tuple[Any, World]:
        if world.volume:
            return None, world
        _still(world)
        return None, world._replace(volume=Volume(generation, None, EMPTY))

    @staticmethod
    def staging(world: World, generation: str) -> tuple[Any, World]:
        others = [s for s in world.staged if s[0] != generation]
        return generation, world._replace(staged=tuple(sorted([*others, (generation, HALF)])))

    @staticmethod
    def unpack(world: World, directory: str, version: str) -> tuple[Any, World]:
        if directory not in dict(world.staged):
            raise RefusedError(FAILED)
        staged = {**dict(world.staged), directory: version}
        return True, world._replace(staged=tuple(sorted(staged.items())))

    @staticmethod
    def discard(world: World, directory: str) -> tuple[Any, World]:
        return None, world._replace(staged=tuple(s for s in world.staged if s[0] != directory))

    @staticmethod
    def place_volume(world: World, generation: str, directory: str, restored_from: str) -> tuple[Any, World]:
        _still(world)
        if world.volume:
            if world.volume[:2] == (generation, restored_from):
                return None, world
            raise RefusedError(FAILED)
        staged = dict(world.staged)
        if directory not in staged:
            raise RefusedError(FAILED)
        placed = Volume(generation, restored_from, staged[directory])
        return None, world._replace(volume=placed, staged=())

    @staticmethod
    def delete_volume(world: World, generation: str) -> tuple[Any, World]:
        there = [v.generation for v in (world.volume, world.parked) if v] + [name for name, _ in world.staged]
        if there and generation not in there:
            return None, world
        _still(world)
        volume, parked = (None if v and v.generation == generation else v for v in (world.volume, world.parked))
        staged = tuple(s for s in world.staged if s[0] != generation)
        return None, world._replace(volume=volume, parked=parked, staged=staged)

    @staticmethod
    def park_volume(world: World, generation: str) -> tuple[Any, World]:
        if world.volume is None or world.volume.generation != generation:
            return None, world
        _still(world)
        if world.parked:
            raise RefusedError(FAILED)
        return None, world._replace(volume=None, parked=world.volume)

    @staticmethod
    def unpark_volume(world: World, generation: str, made: str) -> tuple[Any, World]:
        if world.parked is None or world.parked.generation not in {generation, made}:
            return None, world
        _still(world)
        if world.volume:
            raise RefusedError(FAILED)
        return None, world._replace(volume=world.parked._replace(generation=made), parked=None)

    # --- containers

    @staticmethod
    def start(world: World) -> tuple[Any, World]:
        if world.container:
            return None, world
        if world.volume is None:
            raise RefusedError(FAILED)
        return None, world._replace(container=True)

    @staticmethod
    def stop(world: World) -> tuple[Any, World]:
        return None, world._replace(container=False)

    # --- objects

    @staticmethod
    def list(world: World, prefix: str) -> tuple[Any, World]:
        below = [a for a in world.archives if a.key.startswith(f"{prefix}/")]
        return tuple((a.key, a.data, a.meta) for a in below), world

    @staticmethod
    def put_data(world: World, key: str, version: str) -> tuple[Any, World]:
        found = world.archive(key)
        if found.data:
            raise RefusedError(EXISTS)
        return None, _with_archive(world, found._replace(data=version))

    @staticmethod
    def put_meta(world: World, key: str, version: str) -> tuple[Any, World]:
        found = world.archive(key)
        if found.meta:
            raise RefusedError(EXISTS)
        return None, _with_archive(world, found._replace(meta=version))

    @staticmethod
    def get_data(world: World, key: str) -> tuple[Any, World]:
        if (data := world.archive(key).data) is None:
            raise RefusedError(MISSING)
        return data, world

    @staticmethod
    def get_meta(world: World, key: str) -> tuple[Any, World]:
        if (meta := world.archive(key).meta) is None:
            raise RefusedError(MISSING)
        return meta, world

    @staticmethod
    def delete_data(world: World, key: str) -> tuple[Any, World]:
        return None, _with_archive(world, world.archive(key)._replace(data=None))

    @staticmethod
    def delete_meta(world: World, key: str) -> tuple[Any, World]:
        return None, _with_archive(world, world.archive(key)._replace(meta=None))


# Verbs that are about the object store fail as it does.
OF_STORE = {"list", "put_data", "put_meta", "get_data", "get_meta", "delete_data", "delete_meta"}
# Done by our own code on this machine's files, and not by an actuator that could claim what it did not do.
OURS = {"staging", "unpack", "discard"}
Outcome = tuple[tuple[str, Any], World]


def perform(world: World, verb: str, args: tuple[Any, ...]) -> Outcome:
    """What a verb answers when nothing goes wrong, as `machine` wants it, and the world afterwards."""
    try:
        answer, after = getattr(Verbs, verb)(world, *args)
    except RefusedError as e:
        return ("raises", e.args[0]), world
    return ("returns", answer), after


def faults(world: World, verb: str, args: tuple[Any, ...]) -> list[tuple[str, Outcome]]:
    """Every way in which this call can go wrong: it fails, hangs or lies, before or after its effect."""
    answer, after = perform(world, verb, args)
    failing = ("raises", AWAY if verb in OF_STORE else FAILED)
    found: list[tuple[str, Outcome]] = [("fails", (failing, world)), ("hangs", (("expires", None), world))]
    if answer[0] == "raises":
        return []  # it fails as it is
    if after != world:
        found += [
            ("fails after its effect", (failing, after)),
            ("hangs after its effect", (("expires", None), after)),
        ]
        found += [("lies", (answer, world))] if verb not in OURS else []
    if verb == "put_data":
        found.append(("keeps garbage", (answer, perform(world, verb, (args[0], GARBAGE))[1])))
    return found
