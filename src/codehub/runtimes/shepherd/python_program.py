"""Which Python program a command line is, if it is one. Pure but for the first line of a script, which it reads.

`runtimes.warm` asks what a warm parent has to be for it, and in a copy of that parent `become` runs it.
"""

# Plain names instead of paths: used between a fork and a program.
# ruff: noqa: PTH119, PTH123

import os
import re
from dataclasses import dataclass

INTERPRETER = re.compile(r"python(3(\.\d+)?)?")
# What may stand between interpreter and program; others are rare, and may mean anything.
FLAGS = frozenset({"-u", "-I", "-E", "-s", "-S", "-B", "-P"})
# What an interpreter, the C library or the loader reads when it starts: a copy has not read it, its parent has.
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "LOCPATH", "MALLOC_", "GLIBC_", "OPENSSL_", "SSL_")
SCRIPT, CODE, MODULE = "script", "code", "module"
FIRST_LINE = 256  # bytes: the kernel reads no more either


@dataclass(frozen=True)
class PythonProgram:
    interpreter: str
    flags: tuple[str, ...]
    kind: str  # SCRIPT, CODE or MODULE
    target: str  # its path, its text or its name
    arguments: tuple[str, ...]

    @property
    def isolated(self) -> bool:
        """Neither its own folder nor the current one is searched for modules."""
        return bool({"-I", "-P"} & set(self.flags))

    @property
    def command_line(self) -> list[str]:
        """As the kernel would show it: a script is run by the interpreter that it names."""
        shown = {SCRIPT: [self.target], CODE: ["-c", self.target], MODULE: ["-m", self.target]}[self.kind]
        return [self.interpreter, *self.flags, *shown, *self.arguments]

    @property
    def name(self) -> str:
        """What process lists call it."""
        return os.path.basename(self.target if self.kind == SCRIPT else self.interpreter)


def of(command: list[str]) -> PythonProgram | None:
    """None: something else, or not certain enough. `command` begins with an absolute path."""
    program, *rest = command
    if not INTERPRETER.fullmatch(os.path.basename(program)):
        interpreter = _shebang(program)
        return PythonProgram(interpreter, (), SCRIPT, program, tuple(rest)) if interpreter else None
    count = next((at for at, word in enumerate(rest) if word not in FLAGS), len(rest))
    flags, left = tuple(rest[:count]), rest[count:]
    match left:
        case ["-c", text, *arguments]:
            return PythonProgram(program, flags, CODE, text, tuple(arguments))
        case ["-m", module, *arguments]:
            return PythonProgram(program, flags, MODULE, module, tuple(arguments))
        case [script, *arguments] if script.startswith("/"):
            return PythonProgram(program, flags, SCRIPT, script, tuple(arguments))
    return None


def _shebang(script: str) -> str | None:
    """The interpreter that a script names by its path. By `env` it would be searched for, first in the home."""
    try:
        with open(script, "rb") as file:
            first = file.readline(FIRST_LINE)
    except OSError:
        return None
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") and first.endswith(b"\n") else []
    fits = len(words) == 1 and words[0].startswith("/") and INTERPRETER.fullmatch(os.path.basename(words[0]))
    return words[0] if fits else None
