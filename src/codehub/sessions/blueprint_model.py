"""The shape of a blueprint: frozen, strict, every text and list with a greatest length. `blueprint.parse` reads it.

Names in JSON are camelCase, because files of courses carry them. Texts are brought into one form (line ends, blank
lines around them), so that what is written to a folder and read again is the same.
"""

import itertools
import posixpath
import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

MOST_STEPS = 2000
MOST_FILES = 100
MOST_CHECKS = 20
MOST_SECONDS = 60
LONGEST_PATH = 200
ABOUT_STEPS = "In order. COMPLETE occurs once and is the last; the others may be repeated."
_blank_lines = re.compile(r"\A(?:[ \t]*\n)+")
_controls = re.compile(r"[\x00-\x1f\x7f]")


class Step(StrEnum):
    LEARN = "LEARN"
    CHECK = "CHECK"
    PRACTICE = "PRACTICE"
    COMPLETE = "COMPLETE"


def _storable(text: str) -> str:
    """NUL cannot be stored as text, and half a surrogate pair cannot be sent as UTF-8."""
    if "\x00" in text:
        raise ValueError("has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"has half a surrogate pair, at character {error.start + 1}") from None
    return text


def _unix(text: Any) -> Any:
    """One kind of line end, no blank lines around it."""
    if not isinstance(text, str):
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _blank_lines.sub("", lines).rstrip()


def _one_line(text: str) -> str:
    if _controls.search(text) or len(text.splitlines()) > 1:
        raise ValueError("must be one line, without control characters")
    return text


def _stripped(text: Any) -> Any:
    return text.strip() if isinstance(text, str) else text


def matching(pattern: str, words: str) -> AfterValidator:
    """A text must match this, which is said in words: `must be …`."""
    known = re.compile(pattern)

    def match(text: str) -> str:
        if not known.fullmatch(text):
            raise ValueError(f"must be {words}")
        return text

    return AfterValidator(match)


def whole(value: Any) -> Any:
    """JSON has one kind of number, and `true` is none: pydantic takes it for 1."""
    if isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004 (what pydantic expects)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choice(value: Any) -> Any:
    """A choice that is just a text is its own id."""
    return {"id": value, "text": value} if isinstance(value, str) else value


def _wrong(field: str, complaint: str) -> PydanticCustomError:
    """Of one field of the whole that is looked at; `blueprint` adds it to the place."""
    return PydanticCustomError("invalid", "{complaint}", {"field": field, "complaint": complaint})


def _how_many(value: Any) -> str:
    return SEVERAL if isinstance(value, list | tuple) else ONE


ONE, SEVERAL = "\x00one", "\x00several"  # names of cases, which no field of a blueprint can have
Storable = AfterValidator(_storable)
Markdown = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=100_000), Storable, BeforeValidator(_unix)
]
Command = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=4000), Storable, BeforeValidator(_unix)
]
Line = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=200),
    Storable,
    AfterValidator(_one_line),
    BeforeValidator(_stripped),
]
ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Id = Annotated[
    str,
    Field(strict=True, json_schema_extra={"pattern": ID}, description="Unique among its kind."),
    matching(ID, "1 to 64 letters a–z, A–Z, digits, dots, - and _, of which the first is a letter or a digit"),
]
TEMPLATE = "^[a-z0-9-]{1,63}$"
Template = Annotated[
    str,
    Field(strict=True, json_schema_extra={"pattern": TEMPLATE}),
    matching(TEMPLATE, "the name of a template: lower-case letters a–z, digits and -"),
]
Answer = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=200), Storable, BeforeValidator(_stripped)
]
Answers = Annotated[
    Annotated[Answer, Tag(ONE)] | Annotated[tuple[Answer, ...], Field(min_length=1, max_length=50), Tag(SEVERAL)],
    Discriminator(_how_many),
]


class Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class Choice(Part):
    id: Line
    text: Markdown


class Question(Part):
    """`answer`: of `single` a choice's id, of `multiple` a list of them, of `text` one or several that are accepted."""

    id: Id
    kind: Literal["single", "multiple", "text"]
    prompt: Markdown
    choices: Annotated[
        tuple[Annotated[Choice, BeforeValidator(_choice)], ...],
        Field(max_length=50, description="Of `single` and `multiple`."),
    ] = ()
    answer: Answers = Field(
        description="A choice's id; of `multiple` a list of them; of `text` one or several that are accepted."
    )
    feedback: Annotated[
        dict[Line, Markdown],
        Field(max_length=50, description="What to say to who chose this: by the choice's id, or by the text given."),
    ] = Field(default_factory=dict)

    @property
    def answers(self) -> tuple[str, ...]:
        return (self.answer,) if isinstance(self.answer, str) else self.answer

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if complaint := _question(self):
            raise _wrong(*complaint)
        return self


def plain(text: str) -> str:
    """How text answers are compared: in NFC, trimmed, case-folded. Folding can take a letter apart: composed again."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).strip().casefold())


def _question(question: Question) -> tuple[str, str] | None:
    """Which field does not fit the others, and why."""
    ids = [choice.id for choice in question.choices]
    if question.kind == "text":
        if ids:
            return "choices", "a text question has none"
        return None if all(plain(answer) for answer in question.answers) else ("answer", "is blank")
    if not ids:
        return "choices", f"a {question.kind} question needs some"
    if len(set(ids)) < len(ids):
        return "choices", "two have the same id"
    if (question.kind == "single") != isinstance(question.answer, str):
        return "answer", "must be one choice's id" if question.kind == "single" else "must be a list of choices' ids"
    if len(set(question.answers)) < len(question.answers):
        return "answer", "names a choice twice"
    for where, named in (("answer", question.answers), ("feedback", tuple(question.feedback))):
        if strange := next((name for name in named if name not in ids), None):
            return where, f"{strange!r} is not one of the choices ({', '.join(ids)[:100]})"
    return None


class Check(Part):
    """Passed if the command ends with 0. It runs by `sh -c` in the workspace's home, as the learner."""

    id: Id
    title: Line
    command: Command
    timeout_seconds: Annotated[int, Field(strict=True, ge=1, le=MOST_SECONDS), BeforeValidator(whole)] = 10
    hint: Markdown | None = Field(default=None, description="Shown when it did not pass.")


def _path(path: str) -> str:
    if complaint := path_complaint(path):
        raise ValueError(complaint)
    return path


def path_complaint(path: str) -> str | None:
    """Why a starter file cannot have this path; None: it can."""
    if not path or len(path.encode("utf-8", "replace")) > LONGEST_PATH:
        return f"a path has 1 to {LONGEST_PATH} bytes"
    if "\\" in path or _controls.search(path) or len(path.splitlines()) > 1:
        return "a path has no backslash and no control character; folders are separated by /"
    if path.startswith("/"):
        return "a path is relative to the home: no / at its beginning"
    if ".." in path.split("/"):
        return "a path stays in the home: no .. in it"
    if path == ".":
        return "a path names a file"
    if posixpath.normpath(path) != path:
        return f"a path is written in its shortest form: {posixpath.normpath(path)}"
    if is_compiled(path):
        return "a path names a text, which compiled Python is not"
    return None


def is_compiled(path: str) -> bool:
    """Installers compile every Python file they find, a course's too: what they make is no part of it."""
    return path.endswith(".pyc") and path.split("/")[-2:-1] == ["__pycache__"]


def _apart(files: Mapping[str, str]) -> Mapping[str, str]:
    """On macOS and Windows, where courses are written too, names that differ only in case are one file."""
    seen: dict[str, str] = {}
    for path in files:
        folded = plain(path)
        if folded in seen:
            raise ValueError(f"{path!r} and {seen[folded]!r} differ only in case")
        seen[folded] = path
    # With the separator before every other character, what is in a folder comes right after a file of its name.
    ordered = sorted((folded.replace("/", "\x00"), path) for folded, path in seen.items())
    for (parent, file), (inner, path) in itertools.pairwise(ordered):
        if inner.startswith(f"{parent}\x00"):
            raise ValueError(f"{file!r} is a file, and {path!r} needs it to be a folder")
    return files


Path = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_PATH), Storable, AfterValidator(_path)
]
Text = Annotated[str, StringConstraints(strict=True), Storable]


class Activity(Part):
    template: Annotated[
        Template | None,
        Field(description="Of the workspace; left out: the platform's default."),
    ] = None
    instructions: Markdown
    files: Annotated[
        dict[Path, Text],
        Field(max_length=MOST_FILES, description="Put into the workspace's home: path to text."),
        AfterValidator(_apart),
    ] = Field(default_factory=dict)
    checks: Annotated[tuple[Check, ...], Field(max_length=MOST_CHECKS)] = ()


class Blueprint(Part):
    """`steps` say the order; the rest is what they show, ask and run."""

    version: Annotated[Literal[1], BeforeValidator(whole)] = Field(default=1, description="Of this schema.")
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MOST_STEPS)]
    learning_content: Annotated[
        tuple[Markdown, ...], Field(max_length=MOST_STEPS, description="Chunks of Markdown, for LEARN.")
    ] = ()
    check_questions: Annotated[tuple[Question, ...], Field(max_length=MOST_STEPS, description="For CHECK.")] = ()
    practice_activity: Activity | None = Field(default=None, description="For PRACTICE.")
    encouragement: Markdown = Field(description="What to say at the end.")
