"""The command line as a newcomer meets it: help that names everything, completion, a wrong word."""

import os
import subprocess
import sys
from typing import Any

import pytest
import typer

from codehub import cli
from tests.platform import codehub

RUN = {"serve", "api", "proxy", "coordinator"}
OPERATE = {"migrate", "settings", "backup", "restore", "doctor", "gc", "ide"}
PEOPLE = {"hold", "workspace", "user", "token"}
COMMANDS = RUN | OPERATE | PEOPLE


def every(group: Any, words: tuple[str, ...] = ()) -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        found[" ".join((*words, name))] = command
        if hasattr(command, "commands"):
            found |= every(command, (*words, name))
    return found


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    cli.add_commands("")
    return every(typer.main.get_command(cli.app))


def test_the_help_names_every_command() -> None:
    ended = codehub("--help", COLUMNS="100")
    assert ended.returncode == 0
    named = {line.split()[1] for line in ended.stdout.splitlines() if line.startswith("│ ") and line.split()[1:]}
    assert named >= COMMANDS


def test_every_command_says_what_it_does_and_every_option_what_it_means(commands: dict[str, Any]) -> None:
    assert commands.keys() >= COMMANDS
    for name, command in commands.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name}: {parameter.name}"


@pytest.mark.parametrize("asked", ["serve", "doctor", "backup"])
def test_a_command_that_is_asked_for_is_found_and_no_other_is_loaded(asked: str) -> None:
    others = sorted({module for module, _, _ in cli.LAZY_COMMANDS.values()} - {cli.LAZY_COMMANDS.get(asked, ("",))[0]})
    look = f"import sys; from codehub import cli; cli.add_commands({asked!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert not set(others).intersection(loaded)
    assert asked not in cli.LAZY_COMMANDS or cli.LAZY_COMMANDS[asked][0] in loaded


def test_a_wrong_word_is_told_with_where_to_look() -> None:
    ended = codehub("wrokspace", "ls")
    assert ended.returncode == 2
    assert "wrokspace" in ended.stderr
    assert "-h" in ended.stderr


def test_a_shell_completes_commands_and_what_comes_after_them() -> None:
    def completed(typed: str) -> list[str]:
        ask = {"_CODEHUB_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        program = [sys.executable, "-c", "import sys; sys.argv[0] = 'codehub'; from codehub.cli import main; main()"]
        return subprocess.run(
            program, env={**os.environ, **ask}, capture_output=True, text=True, check=False
        ).stdout.split()

    assert completed("codehub work") == ["workspace"]
    assert "login-link" in completed("codehub user lo")
