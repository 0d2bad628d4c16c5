"""`check.md`: one section a question, `## id`, its prompt as Markdown, and a block ```` ```question ```` of YAML. Pure.

Read and written by `folder`. What a prompt says at the beginning of a line and would be taken for one of these marks is
written with a backslash before it.
"""

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from codehub.courses import front_matter
from codehub.sessions.blueprint import Question

_heading = re.compile(r"## +(\S.*)")
_block = re.compile(r"```question\s*")
_marks = re.compile(r"(\\*)(## .*|##|```question\s*)")
_escaped = re.compile(r"\\(\\*(?:## .*|##|```question\s*))")
_fence = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
NAMES = ("kind", "choices", "answer", "feedback")


@dataclass
class Read:
    questions: list[dict[str, Any]] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)  # line by path: `0.answer`
    errors: list[tuple[int, str]] = field(default_factory=list)


def read(text: str) -> Read:
    read_ = Read()
    lines = text.split("\n")
    blocks = [n for n, line in enumerate(lines) if _block.fullmatch(line)]  # once: there may be many questions
    number = 0
    while number < len(lines):
        found = _heading.fullmatch(lines[number])
        if found:
            opens = bisect.bisect_right(blocks, number)
            end = blocks[opens] if opens < len(blocks) else len(lines)
            number = _section(lines, (number, end), found[1].rstrip(), read_)
        elif lines[number].strip():
            read_.errors.append((number + 1, "a question begins with a line `## its-id`"))
            number = next((n for n in range(number, len(lines)) if _heading.fullmatch(lines[n])), len(lines))
        else:
            number += 1
    if not read_.questions and not read_.errors:
        read_.errors.append((1, "has no question: write some, or remove the file"))
    return read_


def _section(lines: Sequence[str], marks: tuple[int, int], id_: str, read_: Read) -> int:
    """Read one question, whose heading and next block are on these lines; the line after it."""
    start, opens = marks
    heading = next((n for n, line in _outside_fences(lines, start + 1, opens) if _heading.fullmatch(line)), None)
    if heading is not None or opens == len(lines):
        read_.errors.append((start + 1, f"the question {id_!r} has no block ```question"))
        return heading or len(lines)
    closes = next((n for n in range(opens + 1, len(lines)) if lines[n].rstrip() == "```"), None)
    if closes is None:
        read_.errors.append((opens + 1, "the block ```question is not closed by ```"))
        return len(lines)
    found = front_matter.read("\n".join(lines[opens + 1 : closes]), opens + 2)
    read_.errors += found.errors
    if not found.errors:
        _keep(id_, "\n".join(_unescaped(lines[start + 1 : opens])), found, (start + 1, opens + 1), read_)
    return closes + 1


def _keep(id_: str, prompt: str, found: front_matter.Lines, where: tuple[int, int], read_: Read) -> None:
    path = str(len(read_.questions))
    question: dict[str, Any] = {"id": id_, "prompt": prompt, **found.value}
    for name in found.value:
        if name not in NAMES:
            read_.errors.append((found.at[name], f"{name!r} is not known; a question has {', '.join(NAMES)}"))
    choices = question.get("choices")
    if isinstance(choices, dict):
        question["choices"] = [{"id": name, "text": text} for name, text in choices.items()]
    for name in ("choices", "feedback"):
        if name in found.value and not isinstance(found.value[name], dict):
            read_.errors.append((found.at[name], f"{name} must be lines like `a: text`"))
    read_.questions.append({name: question[name] for name in question if name in {"id", "prompt", *NAMES}})
    read_.at |= {f"{path}.{below}": line for below, line in found.at.items() if below}
    read_.at |= {path: where[0], f"{path}.id": where[0], f"{path}.prompt": where[0]}
    read_.at |= {f"{path}.{name}": where[1] for name in NAMES if name not in found.value}


def write(questions: Sequence[Question]) -> str:
    return "\n".join(_written(question) for question in questions)


def _written(question: Question) -> str:
    block: dict[str, Any] = {"kind": question.kind}
    if question.choices:
        block["choices"] = {choice.id: choice.text for choice in question.choices}
    block["answer"] = question.answer if isinstance(question.answer, str) else list(question.answer)
    if question.feedback:
        block["feedback"] = dict(question.feedback)
    prompt = "\n".join(_escape(question.prompt.split("\n")))
    return f"## {question.id}\n\n{prompt}\n\n```question\n{front_matter.write(block)}```\n"


def _escape(lines: Sequence[str]) -> Iterator[str]:
    outside = dict(_outside_fences(lines, 0, len(lines)))
    for number, line in enumerate(lines):
        marked = _marks.fullmatch(line)
        yield f"\\{line}" if marked and (number in outside or "question" in marked[2][:11]) else line


def _unescaped(lines: Sequence[str]) -> Iterator[str]:
    outside = dict(_outside_fences(lines, 0, len(lines)))
    for number, line in enumerate(lines):
        marked = _escaped.fullmatch(line)
        yield marked[1] if marked and (number in outside or "```question" in line) else line


def _outside_fences(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, str]]:
    """Those that are not code. A mark of ours never opens or closes a fence."""
    fence = ""
    for number in range(start, end):
        line = lines[number]
        found = None if _marks.fullmatch(line) else _fence.fullmatch(line)
        if not fence and found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        elif fence and found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
        elif not fence:
            yield number, line
