"""Makes mutants: the rules with one condition dropped or turned round, an operation with two steps exchanged.

Pure text to text. A mutant is known by what it does to which function, so that its name survives other changes.
"""

import ast
import copy
import importlib.util
import itertools
import pathlib
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

RULES = "codehub.workspaces.rules"
# Where the steps of operations are, and the functions whose order is a promise.
STEPS: dict[str, tuple[str, ...]] = {
    "codehub.reconciler.operations": (
        "give_up",
        "_provision",
        "_own_volume",
        "_require_ours",
        "_restore",
        "_start",
        "_archive",
        "_delete",
    ),
    "codehub.reconciler.homes": ("store", "fetch"),
    "codehub.reconciler.controller": ("_advance", "_execute", "_attempt", "_look_first", "_look", "_complete_start"),
    "codehub.reconciler.transitions": ("apply_observation", "fail", "is_ours", "commit_archive"),
    "codehub.archives.service": ("archive", "_commit", "_read_back", "restore", "_checked", "delete"),
}


class Mutant(NamedTuple):
    name: str
    module: str
    source: str


@cache
def every() -> list[Mutant]:
    found = [*_of_conditions(RULES)]
    for module, functions in STEPS.items():
        found += _of_steps(module, functions)
    return found


def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec
    assert spec.origin
    return ast.parse(pathlib.Path(spec.origin).read_text(encoding="utf-8"))


class _Text:
    """A module's text, statement by statement, with the names that its mutants have got."""

    def __init__(self, module: str) -> None:
        self._module = module
        self.tree = _tree(module)
        self._parts = [ast.unparse(statement) for statement in self.tree.body]
        self._names: dict[str, int] = {}

    def mutant(self, what: str, place: int, changed: ast.stmt) -> Mutant:
        """The same with another statement in this place."""
        name = f"{self._module.removeprefix('codehub.')}.{what}"
        self._names[name] = self._names.get(name, 0) + 1
        if self._names[name] > 1:
            name += f" ({self._names[name]})"
        text = ast.unparse(ast.fix_missing_locations(changed))
        return Mutant(name, self._module, "\n".join([*self._parts[:place], text, *self._parts[place + 1 :]]))


# --- conditions


def _of_conditions(module: str) -> Iterator[Mutant]:
    text = _Text(module)
    for place, statement in enumerate(text.tree.body):
        where = _title(statement)
        for node in [n for n in ast.walk(statement) if isinstance(n, ast.expr)]:
            for what, changed in _changes(node):
                yield text.mutant(f"{where}: {what}", place, _replaced(statement, node, changed))


def _title(statement: ast.stmt) -> str:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    return ast.unparse(statement).split(":", 1)[0].split("=", 1)[0].strip()


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Dropped: one part of an `and` or `or`. Turned round: a comparison, a negation, what an `if` asks."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            left = [value for value in node.values if value is not part]
            smaller = left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
            yield f"`{ast.unparse(node)}` without `{ast.unparse(part)}`", smaller
        for part in node.values:
            if not isinstance(part, ast.Compare | ast.BoolOp | ast.UnaryOp):
                turned = [ast.UnaryOp(ast.Not(), value) if value is part else value for value in node.values]
                yield f"`{ast.unparse(node)}` with not `{ast.unparse(part)}`", ast.BoolOp(node.op, turned)
    elif isinstance(node, ast.Compare):
        yield f"not `{ast.unparse(node)}`", ast.UnaryOp(ast.Not(), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"`{ast.unparse(node)}` without its not", node.operand
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield f"not `{ast.unparse(node.test)}`", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _replaced(statement: ast.stmt, node: ast.expr, changed: ast.expr) -> ast.stmt:
    class Replace(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> ast.AST:
            return changed if visited is node else self.generic_visit(visited)

    # A copy, in which the one node is still itself.
    copied = copy.deepcopy(statement, {id(node): node, id(changed): changed})
    Replace().visit(copied)
    return copied


# --- steps


def _of_steps(module: str, functions: tuple[str, ...]) -> Iterator[Mutant]:
    text = _Text(module)
    for place, statement in enumerate(text.tree.body):
        for function in ast.walk(statement):
            if not isinstance(function, ast.AsyncFunctionDef) or function.name not in functions:
                continue
            for block in _blocks(function):
                steps = [n for n, step in enumerate(block) if _is_step(step)]
                for first, second in itertools.pairwise(steps):
                    what = f"{function.name}: `{_short(block[second])}` before `{_short(block[first])}`"
                    block[first], block[second] = block[second], block[first]
                    yield text.mutant(what, place, statement)
                    block[first], block[second] = block[second], block[first]


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and len(block) > 1:
                yield block


def _is_step(statement: ast.stmt) -> bool:
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    return any(isinstance(node, waits) for node in ast.walk(statement))


def _short(statement: ast.stmt) -> str:
    text = ast.unparse(statement).split("\n", 1)[0]
    return text if len(text) < 80 else f"{text[:77]}…"
