"""Runs the product's own SQL on one row: the subset that its statements about one workspace use.

Nothing about workspaces is written down here a second time. `database` calls it; a test compares it with PostgreSQL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

Row = Mapping[str, Any]
Value = Callable[[Row, tuple[Any, ...]], Any]

TOKEN = re.compile(r"\s*(?:--[^\n]*\n|('[^']*')|(\$\d+)|(\w+)|(::\w+(?:\[\])?)|(<>|<=|>=|[-=<>(),*;.]))")
END = "<END>"
# The row, with its owner by name; or its id.
READ = (("*", ",", "CODEHUB_USER_NAME", "(", "OWNER_ID", ")", "AS", "OWNER"), ("ID",))
CLAUSES = {"ORDER", "LIMIT", "FOR", "RETURNING", END, ";"}


class NotUnderstoodError(Exception):
    """The statement is not about the row of one workspace, or uses what this page does not know."""


@dataclass(frozen=True)
class Statement:
    """`changes` is None for a SELECT."""

    where: Value | None
    changes: Mapping[str, Value] | None

    def run(self, row: Row, args: tuple[Any, ...]) -> Row | None:
        """The row as it is afterwards; None when the condition does not hold."""
        if self.where is not None and self.where(row, args) is not True:
            return None
        return {**row, **{name: value(row, args) for name, value in (self.changes or {}).items()}}


@cache
def parse(sql: str) -> Statement:
    return _Parser(sql).statement()


@cache
def parse_condition(sql: str) -> Value:
    return _Parser(sql).expression()


def _and(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: Any, b: Any) -> Any:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _not(a: Any) -> Any:
    return None if a is None else not a


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "coalesce": lambda values: next((v for v in values if v is not None), None),
    "greatest": lambda values: max((v for v in values if v is not None), default=None),
}
CONSTANTS = {"null": None, "true": True, "false": False}


def _compared(op: str, left: Value, right: Value) -> Value:
    compare = COMPARE[op]

    def value(row: Row, args: tuple[Any, ...]) -> Any:
        a, b = left(row, args), right(row, args)
        return None if a is None or b is None else compare(a, b)

    return value


class _Parser:
    def __init__(self, sql: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while at < len(sql.rstrip()):
            found = TOKEN.match(sql, at)
            if found is None:
                raise NotUnderstoodError(sql[at : at + 40])
            at = found.end()
            self._tokens += [part for part in found.groups() if part]
        self._tokens.append(END)
        self._at = 0

    # --- tokens

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        coming = [token.upper() for token in self._tokens[self._at : self._at + len(words)]]
        if coming != list(words):
            return False
        self._at += len(words)
        return True

    def _expect(self, *words: str) -> None:
        if not self._accept(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected before {self._peek()}")

    # --- statements

    def statement(self) -> Statement:
        changes: dict[str, Value] | None = None
        if self._accept("UPDATE", "WORKSPACES", "SET"):
            changes = {}
            while not changes or self._accept(","):
                name = self._next()
                self._expect("=")
                changes[name] = self.expression()
        elif not any(self._accept("SELECT", *what, "FROM", "WORKSPACES") for what in READ):
            raise NotUnderstoodError(" ".join(self._tokens[:6]))
        where = self.expression() if self._accept("WHERE") else None
        if self._peek().upper() not in CLAUSES:
            raise NotUnderstoodError(f"what is {self._peek()}?")
        return Statement(where, changes)

    # --- expressions

    def expression(self) -> Value:
        return self._chain("OR", self._conjunction, _or)

    def _conjunction(self) -> Value:
        return self._chain("AND", self._negation, _and)

    def _chain(self, word: str, part: Callable[[], Value], join: Callable[[Any, Any], Any]) -> Value:
        left = part()
        while self._accept(word):
            left = self._joined(left, part(), join)
        return left

    @staticmethod
    def _joined(left: Value, right: Value, join: Callable[[Any, Any], Any]) -> Value:
        return lambda row, args: join(left(row, args), right(row, args))

    def _negation(self) -> Value:
        if self._accept("NOT"):
            inner = self._negation()
            return lambda row, args: _not(inner(row, args))
        return self._comparison()

    def _comparison(self) -> Value:
        left = self._primary()
        if self._accept("IS", "NOT", "DISTINCT", "FROM"):
            right = self._primary()
            return lambda row, args: left(row, args) == right(row, args)
        if self._accept("IS", "DISTINCT", "FROM"):
            right = self._primary()
            return lambda row, args: left(row, args) != right(row, args)
        if self._accept("IS", "NOT", "NULL"):
            return lambda row, args: left(row, args) is not None
        if self._accept("IS", "NULL"):
            return lambda row, args: left(row, args) is None
        if self._accept("NOT", "IN"):
            inside = self._membership(left)
            return lambda row, args: _not(inside(row, args))
        if self._accept("IN"):
            return self._membership(left)
        if self._accept("=", "ANY"):
            right = self._primary()
            return lambda row, args: left(row, args) in right(row, args)
        return _compared(self._next(), left, self._primary()) if self._peek() in COMPARE else left

    def _membership(self, left: Value) -> Value:
        values = self._list()

        def value(row: Row, args: tuple[Any, ...]) -> Any:
            found = left(row, args)
            return None if found is None else found in [v(row, args) for v in values]

        return value

    def _list(self) -> list[Value]:
        self._expect("(")
        values = [self.expression()]
        while self._accept(","):
            values.append(self.expression())
        self._expect(")")
        return values

    def _primary(self) -> Value:
        value = self._atom()
        while self._peek().startswith("::"):
            self._next()  # a cast changes nothing of what we hold
        return value

    def _atom(self) -> Value:
        if self._accept("CASE"):
            return self._case()
        if self._peek() == "(":
            values = self._list()
            if len(values) != 1:
                raise NotUnderstoodError("rows of values")
            return values[0]
        token = self._next()
        if token.startswith("'"):
            return lambda _row, _args: token[1:-1]
        if token.startswith("$"):
            number = int(token[1:]) - 1
            return lambda _row, args: args[number]
        if token.isdigit():
            return lambda _row, _args: int(token)
        if token.lower() in CONSTANTS:
            return lambda _row, _args: CONSTANTS[token.lower()]
        if token.lower() in FUNCTIONS and self._peek() == "(":
            function, inner = FUNCTIONS[token.lower()], self._list()
            return lambda row, args: function([v(row, args) for v in inner])
        if not token.isidentifier():
            raise NotUnderstoodError(f"what is {token}?")
        return lambda row, _args: row[token]

    def _case(self) -> Value:
        branches: list[tuple[Value, Value]] = []
        while self._accept("WHEN"):
            when = self.expression()
            self._expect("THEN")
            branches.append((when, self.expression()))
        otherwise: Value = self.expression() if self._accept("ELSE") else lambda _row, _args: None
        self._expect("END")

        def value(row: Row, args: tuple[Any, ...]) -> Any:
            return next((then for when, then in branches if when(row, args) is True), otherwise)(row, args)

        return value


def checks(schema: str) -> list[str]:
    """The CHECK conditions of `CREATE TABLE workspaces` in a migration."""
    begin = schema.index("CREATE TABLE workspaces (")
    table = schema[begin : schema.index("\n);", begin)]
    found = []
    for match in re.finditer(r"CHECK \(", table):
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(table[at], 0)
            at += 1
        condition = table[match.end() : at - 1]
        if "~" not in condition:  # the form of an id
            found.append(condition)
    return found
