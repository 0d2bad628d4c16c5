"""What modules remember of the process that imported them: its home, its user, its folder, the machine's name.

A warm parent (`warm`) imports under names that nobody has. `find` looks for them in everything that Python keeps, and
each copy of the parent puts its own in their place (`replace`). `leftovers` says what could not be found so: a
parent that has any is not used. Nothing here knows any particular module.
"""

import gc
import pathlib
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

DEPTH = 4  # of containers in each other that the garbage collector does not know, since they hold plain values only
PLAIN = frozenset({tuple, frozenset})  # those that can be made anew of their parts
NAMED = 5  # leftovers that are named


class Places:
    """Where the names stand, each with a way to put another value there."""

    def __init__(self) -> None:
        self._found: list[tuple[Callable[[Any], None], Any]] = []
        self._seen: set[int] = set()

    def find(self, names: tuple[str, ...]) -> None:
        objects = gc.get_objects()
        namespaces = {id(_namespace_of(thing)): thing for thing in objects if isinstance(thing, type)}
        for thing in objects:
            if thing is not self.__dict__ and thing is not self._found:
                self._look(thing, names, namespaces)

    def replace(self, values: Mapping[str, str]) -> None:
        """`values`: what stands for each of the names from now on."""
        for put, value in self._found:
            put(_replaced(value, values))

    def leftovers(self, names: tuple[str, ...]) -> list[str]:
        """Where one of them still stands, in a few words each; asked in a copy, after `replace`."""
        ours = {id(names), id(self._found), *map(id, self._found)}
        found = []
        for thing in gc.get_objects():
            if id(thing) in ours or isinstance(thing, types.FrameType):
                continue
            left = next((value for value in _values(thing) if value is not names and _mentions(value, names)), None)
            if left is not None:
                found.append(f"{type(thing).__name__}: {left!r}"[:200])
        return found[:NAMED]

    def _look(self, thing: Any, names: tuple[str, ...], namespaces: Mapping[int, type]) -> None:
        if isinstance(thing, dict):
            owner = namespaces.get(id(thing))
            for key, value in list(thing.items()):
                self._note(names, value, _put_attribute(owner, key) if owner else _put_item(thing, key))
        elif isinstance(thing, list):
            for at, value in enumerate(thing):
                self._note(names, value, _put_item(thing, at))
        elif isinstance(thing, types.FunctionType):
            self._note(names, thing.__defaults__, _put_attribute(thing, "__defaults__"))
        elif isinstance(thing, types.CellType):
            self._note(names, _content(thing), _put_attribute(thing, "cell_contents"))
        elif not isinstance(thing, type | tuple | types.ModuleType) and _holds(thing, names):
            for name, value in _attributes(thing):
                self._note(names, value, _put_attribute(thing, name))

    def _note(self, names: tuple[str, ...], value: Any, put: Callable[[Any], None]) -> None:
        if isinstance(value, dict | list) and not gc.is_tracked(value) and id(value) not in self._seen:
            self._seen.add(id(value))
            self._look(value, names, {})
        elif _mentions(value, names):
            self._found.append((put, value))


def _holds(thing: Any, names: tuple[str, ...]) -> bool:
    return any(_mentions(value, names) for value in gc.get_referents(thing))


def _values(thing: Any, depth: int = DEPTH) -> Iterator[Any]:
    for value in gc.get_referents(thing):
        yield value
        if depth and isinstance(value, dict | list | tuple | set | frozenset) and not gc.is_tracked(value):
            yield from _values(value, depth - 1)


def _mentions(value: Any, names: tuple[str, ...]) -> bool:
    if isinstance(value, str):
        return any(name in value for name in names)
    if isinstance(value, bytes):
        return any(name.encode() in value for name in names)
    if isinstance(value, pathlib.PurePath):
        return _mentions(str(value), names)
    return type(value) in PLAIN and value is not names and any(_mentions(one, names) for one in value)


def _replaced(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, new in values.items():
            value = value.replace(name, new)
        return value
    if isinstance(value, bytes):
        return _replaced(value.decode(errors="surrogateescape"), values).encode(errors="surrogateescape")
    if isinstance(value, pathlib.PurePath):
        return type(value)(_replaced(str(value), values))
    if type(value) in PLAIN:
        return type(value)(_replaced(one, values) for one in value)
    return value


def _namespace_of(owner: type) -> Any:
    return gc.get_referents(vars(owner))[0]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    slots = [slot for kind in type(thing).__mro__ for slot in vars(kind).get("__slots__", ()) if isinstance(slot, str)]
    for name in [*getattr(thing, "__dict__", ()), *slots]:
        try:
            yield name, getattr(thing, name)
        except AttributeError:
            continue


def _put_item(thing: Any, key: Any) -> Callable[[Any], None]:
    return lambda value: thing.__setitem__(key, value)


def _put_attribute(thing: Any, name: str) -> Callable[[Any], None]:
    return lambda value: setattr(thing, name, value)
