"""YAML with the line of every value, as a course's files have it: between two lines `---`, or in a fenced block.

Every scalar is read as the text that is written: `no`, `1.10` and `2026-01-01` stay what they are. Aliases are refused,
as a few lines of them make a document of any size. Used by `folder` and `questions`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

FENCE = "---"
_line_ends = re.compile("[\\x85\\u2028\\u2029]")
LONGEST = 600_000  # characters: a session of 256 KB, written in short lines, each of which is indented
DEEPEST = 20
LONGEST_EXAMPLE = 60  # characters
_name_and_value = re.compile(r"[ \t]*(?:- +)*([\w-]{1,40}):[ \t]+(\S.*?)[ \t]*")


class _Loader(yaml.BaseLoader):  # type: ignore[misc]  # the library has no types
    """Ends at a depth that no course needs: with every level, the library takes longer for each character."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        self._require_depth(self.flow_level)
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        if self.indent < column:
            self._require_depth(len(self.indents))
        added: bool = super().add_indent(column)
        return added

    def _require_depth(self, depth: int) -> None:
        if depth >= DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested more than {DEEPEST} deep", problem_mark=self.get_mark())


@dataclass(frozen=True)
class Lines:
    """Where what was read stands: lines by path (`checks.0.title`), and what could not be read."""

    value: dict[str, Any] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)
    errors: list[tuple[int, str]] = field(default_factory=list)


def split(text: str) -> tuple[str | None, str, int]:
    """The front matter (None: there is none), the body, and the body's first line, from 1."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return None, text, 1
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]), number + 2
    return None, text, 1


def read(text: str, first: int) -> Lines:
    """`first`: the file's line on which this text begins."""
    read_ = Lines()
    if len(text) > LONGEST:
        read_.errors.append((first, f"has more than {LONGEST} characters of YAML"))
        return read_
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_Loader)):
            read_.errors.append((first, "has an alias (*name): write it out"))
            return read_
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        read_.errors.append((first + line, _complaint(str(error.problem or error.context), text.split("\n"), line)))
    except yaml.YAMLError as error:
        read_.errors.append((first, f"is not YAML: {str(error).splitlines()[0]}"))
    else:
        if isinstance(node, yaml.MappingNode):
            read_.value.update(_value(node, "", first, read_))
        elif node is not None:
            read_.errors.append((first, "must be lines like `name: value`"))
    return read_


def _complaint(problem: str, lines: Sequence[str], line: int) -> str:
    """What to do about it, where it is one of the mistakes that authors make."""
    text = lines[line] if line < len(lines) else ""
    found = _name_and_value.fullmatch(text)
    example = _quoted(found[1], found[2]) if found else 'name: "text: more"'
    if "mapping values are not allowed" in problem:
        return f"the value has a colon in it: put it in quotes, like {example}"
    if "\\t" in problem:
        return "a tab: indent with spaces"
    if "cannot start any token" in problem or "undefined alias" in problem:
        return f"the value begins with a character that YAML keeps for itself: put it in quotes, like {example}"
    return f"is not YAML: {problem}"


def _quoted(name: str, value: str) -> str:
    """Not of a long line: it is there to be seen how it is done."""
    short = value if len(value) <= LONGEST_EXAMPLE else f"{value[:LONGEST_EXAMPLE]}…"
    escaped = short.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}: "{escaped}"'


def write(value: Mapping[str, Any]) -> str:
    """What `read` reads as the same."""
    text: str = yaml.dump(dict(value), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000)
    return text


def _value(node: Any, path: str, first: int, read_: Lines) -> Any:
    read_.at[path] = first + node.start_mark.line
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner, f"{path}.{number}".lstrip("."), first, read_) for number, inner in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for key, inner in node.value:
        line = first + key.start_mark.line
        if not isinstance(key, yaml.ScalarNode):
            read_.errors.append((line, "a name must be a text"))
        elif key.value in found:
            read_.errors.append((line, f"{key.value!r} is there twice"))
        else:
            below = f"{path}.{key.value}".lstrip(".")
            found[key.value] = _value(inner, below, first, read_)
            read_.at[below] = line  # of the name: a value may begin on the next line
    return found


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # the library has no types
    """Texts of several lines as blocks, which are read and compared best."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text and not text.startswith((" ", "\n", "\t")) else None
    if _line_ends.search(text):  # which YAML takes for line ends too, unless they are escaped
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)
