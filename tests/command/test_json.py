"""`--json` of every command: one document on standard output, or one problem on standard error; and the exit code."""

import json
import pathlib
from typing import Any

import typer

from codehub import cli
from codehub.command.client import Api
from codehub.embedded.datadir import DataDir
from tests.command.running import run
from tests.platform import Platform, codehub

RUN = {"serve", "api", "proxy", "coordinator"}
# One after the other, and what each ends with; {file} is a backup, {token} a token's id. Every command is here.
STEPS: list[tuple[str, int]] = [
    ("user add mina --role teacher", 0),
    ("user add mina", 1),
    ("user add", 2),
    ("user ls", 0),
    ("user list", 0),
    ("user login-link mina", 0),
    ("user password mina", 1),  # without a terminal, and nothing to read
    ("user role mina learner", 0),
    ("user deactivate mina", 0),
    ("user activate mina", 0),
    ("token create mina --label 한글 --scope read", 0),
    ("token ls mina", 0),
    ("token list mina", 0),
    ("token revoke mina {token}", 0),
    ("workspace templates", 0),
    ("workspace create lab --owner mina --template tiny", 0),
    ("workspace ls", 0),
    ("workspace list", 0),
    ("workspace fetch lab", 1),  # it began without a repository
    ("workspace open lab", 0),
    ("workspace why lab", 0),
    ("workspace logs lab", 0),
    ("workspace logs lab --follow", 1),
    ("workspace download lab -o {file}.tar.gz", 0),
    ("workspace download lab -o -", 1),
    ("workspace stop lab", 0),
    ("workspace start lab --no-wait", 0),
    ("workspace archive lab", 0),
    ("workspace restore-points lab", 0),
    ("workspace restore lab 1", 0),
    ("workspace recover lab", 1),
    ("workspace rename lab 실습", 0),
    ("workspace history 실습", 0),
    ("workspace rm 실습", 0),
    ("workspace undelete 실습", 0),
    ("workspace rm 실습 --purge --yes", 0),
    ("course new {file}.course", 0),
    ("course new {file}.course", 1),
    ("course check {file}.course", 0),
    ("course check no-such-folder", 1),
    ("course import {file}.course --owner mina", 0),
    ("course import {file}.course --owner mina", 0),
    ("course import no-such-folder", 1),
    ("course list", 0),
    ("course ls", 0),
    ("course export no-such-course {file}.out", 1),
    ("course export {course} {file}.out", 0),
    ("course withdraw {course}", 0),
    ("course withdraw no-such-course", 1),
    ("course offer {course}", 0),
    ("course offer no-such-course", 1),
    ("class create 수업", 0),
    ("class create Python --teacher nobody-here", 1),
    ("class add {class} mina", 0),
    ("class add {class} no-such-person", 1),
    ("class invite {class} --hours 2 --max-uses 30", 0),
    ("class import {class} {file}.csv --dry-run", 0),
    ("class import {class} {file}.csv", 0),
    ("class import {class} no-such-file", 1),
    ("class show {class}", 0),
    ("class show no-such-class", 1),
    ("class schedule add {class} mon,wed 08:55 --zone Asia/Seoul --learner mina", 0),
    ("class schedule add {class} someday 08:55", 1),
    ("class schedule list {class}", 0),
    ("class schedule ls {class}", 0),
    ("class schedule show {class} {schedule}", 0),
    ("class schedule show {class} no-such-schedule", 1),
    ("class schedule skip {class} {schedule}", 0),
    ("class schedule unskip {class} {schedule}", 0),
    ("class schedule pause {class} {schedule}", 0),
    ("class schedule skip {class} {schedule}", 1),
    ("class schedule resume {class} {schedule}", 0),
    ("class schedule delete {class} {schedule}", 0),
    ("class schedule delete {class} {schedule}", 1),
    ("class remove {class} mina", 0),
    ("class list", 0),
    ("class ls", 0),
    ("user remove mina --yes", 0),
    ("user remove mina --yes", 1),
    ("queue open workshop", 1),
    ("queue open workshop --capacity 2", 0),
    ("queue pause workshop", 0),
    ("queue drain workshop", 0),
    ("queue show workshop", 0),
    ("queue show no-such-event", 1),
    ("queue events", 0),
    ("migrate", 0),
    ("settings", 0),
    ("gc --dry-run", 0),
    ("gc", 0),
    ("doctor", 0),
    ("backup {file}", 0),
    ("restore {file}", 1),
    ("ide install no-such-ide", 1),
    ("ttl what-if --standby 15m", 0),
    ("ttl what-if --standby soon", 1),
    ("hold 2h", 1),
]


MAKES = {
    "token": "token create",
    "course": "course import",
    "class": "class create",
    "schedule": "class schedule add",
}


def leaves(group: Any, words: tuple[str, ...] = ()) -> set[str]:
    found = set()
    for name, command in group.commands.items():
        below = hasattr(command, "commands")
        found |= leaves(command, (*words, name)) if below else {" ".join((*words, name))}
    return found


def test_every_command_is_here() -> None:
    cli.add_commands("")
    every = leaves(typer.main.get_command(cli.app)) - RUN
    missing = {name for name in every if not any(f"{step} ".startswith(f"{name} ") for step, code in STEPS if code < 2)}
    assert missing == set()


def test_every_command_answers_a_program_in_json(platform: Platform, tmp_path: pathlib.Path) -> None:
    known = {"file": str(tmp_path / "all.backup"), "token": "", "course": "", "class": "", "schedule": ""}
    pathlib.Path(f"{known['file']}.csv").write_text("김민아,,7\n", encoding="utf-8")
    for step, code in STEPS:
        done = run(platform, *step.format(**known).split(), "--json")
        assert done.returncode == code, (step, done.stdout, done.stderr)
        if code == 0:
            told = json.loads(done.stdout)
            assert isinstance(told, dict), step
            for name, makes in MAKES.items():
                known[name] = told["id"] if step.startswith(makes) else known[name]
        else:
            assert done.stdout == "", step
            problem = json.loads(done.stderr)
            assert problem.keys() >= {"type", "title", "status", "detail", "code"}, step


def test_a_list_has_every_item_however_many_pages_the_api_needs(platform: Platform) -> None:
    api = Api(DataDir(platform.data_dir).operator_socket, platform.url)
    names = {f"pupil-{number}" for number in range(205)}
    for name in names:
        api.post("users", name=name)
    listed = json.loads(run(platform, "user", "ls", "--json").stdout)["items"]
    assert {person["name"] for person in listed} >= names
    assert run(platform, "user", "ls").stdout.count("pupil-") == len(names)


def test_what_is_wrong_with_the_words_is_a_problem_too() -> None:
    done = codehub("wrokspace", "ls", "--json")
    assert done.returncode == 2
    assert "wrokspace" in json.loads(done.stderr)["detail"]


def test_the_option_of_a_command_that_is_held_is_not_ours() -> None:
    done = codehub("hold", "--", "echo", "--json")
    assert (done.returncode, done.stdout) == (0, "--json\n")
