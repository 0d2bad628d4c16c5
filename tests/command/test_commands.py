"""The command line as an operator uses it: what it says, what it refuses, and what it leaves alone."""

import pathlib
import re
import shlex
import subprocess
import tarfile

import pytest

from tests.command.running import found, in_a_shell, refused, run, said
from tests.platform import Platform, codehub

README = pathlib.Path(__file__).parents[2] / "README.md"
ID = re.compile(r"\(([a-z0-9]{12})\)")


def create(platform: Platform, name: str) -> str:
    told = said(platform, "workspace", "create", name, "--owner", "admin", "--template", "tiny", "--no-start")
    match = ID.search(told)
    assert match
    return match[1]


def test_every_command_of_the_readme_works(platform: Platform, tmp_path: pathlib.Path) -> None:
    """Pasted one after the other, as the page has them."""
    lines = [line.strip() for line in README.read_text().splitlines() if line.startswith("    .venv/bin/codehub ")]
    assert len(lines) >= 12
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        done = run(platform, *words, folder=tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert {path.suffix for path in tmp_path.iterdir()} == {".gz", ".backup"}


def test_each_says_in_a_sentence_what_it_did(platform: Platform) -> None:
    told = said(platform, "workspace", "create", "desk", "--owner", "admin", "--template", "tiny")
    match = ID.search(told)
    assert match
    id_, called = match[1], f"desk ({match[1]})"
    assert told == f"Created {called} for admin: {platform.url}/w/{id_}/\n"
    assert said(platform, "workspace", "stop", "desk") == f"{called} is asleep.\n"
    assert said(platform, "workspace", "start", "desk", "--no-wait") == f"{called} will be started.\n"
    assert said(platform, "workspace", "start", "desk") == f"{called} is running.\n"
    assert said(platform, "workspace", "rename", "desk", "desk 2") == f"{called} is called desk 2 now.\n"
    assert said(platform, "workspace", "archive", id_) == f"desk 2 ({id_}) is stored away.\n"
    assert said(platform, "workspace", "undelete", "desk 2") == f"desk 2 ({id_}) is not in the trash.\n"
    assert said(platform, "workspace", "rm", "desk 2").startswith(f"desk 2 ({id_}) is in the trash; ")
    assert refused(platform, "workspace", "start", "desk 2") == "codehub: it is in the trash: undelete it first"
    assert said(platform, "workspace", "undelete", "desk 2") == f"desk 2 ({id_}) comes back from the trash.\n"
    assert said(platform, "workspace", "rm", id_, "--purge", "-y") == f"desk 2 ({id_}) is destroyed.\n"


def test_history_has_who_did_it_and_not_the_owner(platform: Platform) -> None:
    id_ = create(platform, "watched")
    who = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    entries = found(platform, "workspace", "history", id_)["items"]
    assert (entries[0]["event"], entries[0]["actor"]) == ("created", f"cli:{who}")
    assert f"cli:{who}" in said(platform, "workspace", "history", id_)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "name: must not be empty"),
        ("x" * 150, "name: must have at most 100 characters"),
        ("a\u202eb", "name: has a character that cannot be seen, or turns the others around (U+202E)"),
    ],
    ids=["empty", "long", "unseen"],
)
def test_names_are_held_to_the_rules_of_the_pages(platform: Platform, name: str, complaint: str) -> None:
    words = ("workspace", "create", name, "--owner", "admin", "--template", "tiny")
    assert refused(platform, *words) == f"codehub: {complaint}"
    id_ = create(platform, "kept")
    assert refused(platform, "workspace", "rename", id_, name) == f"codehub: {complaint}"
    assert found(platform, "workspace", "open", id_)["id"] == id_


def test_a_workspace_is_not_made_for_somebody_who_is_not_there(platform: Platform) -> None:
    words = ("workspace", "create", "lab", "--owner", "nobody-here", "--template", "tiny")
    assert refused(platform, *words) == "codehub: there is no such user"


def test_times_are_the_readers_own_with_their_zone(platform: Platform) -> None:
    id_ = create(platform, "timed")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d KST\n", said(platform, "workspace", "ls", TZ="Asia/Seoul"))
    seoul = said(platform, "workspace", "history", id_, TZ="Asia/Seoul").splitlines()[1]
    here = said(platform, "workspace", "history", id_, TZ="UTC").splitlines()[1]
    assert " KST " in seoul
    assert " UTC " in here
    assert seoul[:19] > here[:19]


def test_korean_names_come_and_go_as_they_are(platform: Platform, tmp_path: pathlib.Path) -> None:
    create(platform, "실습 1주차")
    create(platform, "plain")
    lines = said(platform, "workspace", "ls").splitlines()
    rows = [line for line in lines if "실습 1주차" in line or " plain " in line]
    # Each Korean letter takes two columns of a terminal: what follows begins at the same one.
    columns = {line.index("admin") + sum(ord(c) >= 0xAC00 for c in line) for line in rows}
    assert len(columns) == 1
    said(platform, "workspace", "start", "실습 1주차")
    done = run(platform, "workspace", "download", "실습 1주차", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("실습-1주차-")
    plain = in_a_shell(platform, "codehub workspace ls", LC_ALL="en_US.ISO-8859-1", PYTHONIOENCODING="ascii:strict")
    assert plain.returncode == 0, plain.stderr
    documented = in_a_shell(platform, "codehub workspace ls --json", PYTHONIOENCODING="ascii:strict")
    assert b"\\uc2e4" in documented.stdout


def test_a_download_leaves_a_file_that_is_there_alone(platform: Platform, tmp_path: pathlib.Path) -> None:
    id_ = create(platform, "full")
    said(platform, "workspace", "start", id_)
    target = tmp_path / "home.tar.gz"
    target.write_text("mine")
    complaint = refused(platform, "workspace", "download", id_, "-o", str(target))
    assert complaint == f"codehub: {target} is there already: overwrite it with --force, or name another file with -o"
    assert target.read_text() == "mine"
    assert said(platform, "workspace", "download", id_, "-o", str(target), "--force").startswith(f"Wrote {target}: ")
    with tarfile.open(target) as tar:
        assert tar.getnames()
    first = run(platform, "workspace", "download", id_, folder=tmp_path)
    second = run(platform, "workspace", "download", id_, folder=tmp_path)
    assert (first.returncode, second.returncode) == (0, 1)
    assert "is there already" in second.stderr
    assert len(list(tmp_path.iterdir())) == 2  # nothing half written is left
    piped = in_a_shell(platform, f"codehub workspace download {id_} -o - | tar tz")
    assert piped.returncode == 0, piped.stderr


def test_the_templates_are_those_of_the_server(platform: Platform) -> None:
    """Its folder of templates is in the environment of `serve`, not in that of the command."""
    listed = said(platform, "workspace", "templates")
    assert re.search(r"^tiny ", listed, re.MULTILINE)


def test_two_of_one_name_are_told_apart_by_their_ids(platform: Platform) -> None:
    twins = {create(platform, "twin") for _ in range(2)}
    complaint = refused(platform, "workspace", "open", "twin")
    assert complaint.startswith("codehub: twin: 2 workspaces are called so, use an id: ")
    assert all(f"{id_} of admin" in complaint for id_ in twins)
    for id_ in twins:
        assert found(platform, "workspace", "open", id_)["id"] == id_


@pytest.mark.parametrize("word", ["", "..", "../users", "a/b", "%2e%2e", "\udcff", "x?purge=true", "x#y"], ids=ascii)
def test_a_word_that_is_no_name_leads_nowhere(platform: Platform, word: str) -> None:
    assert "there is no workspace" in refused(platform, "workspace", "open", word)
    complaint = refused(platform, "user", "role", word, "admin")
    assert "there is no such user" in complaint or "must be one word without a slash" in complaint


def test_a_workspace_whose_name_has_a_slash_is_found(platform: Platform) -> None:
    id_ = create(platform, "weeks 1/2")
    assert found(platform, "workspace", "open", "weeks 1/2")["id"] == id_


def test_what_is_piped_is_whole_and_a_reader_that_leaves_early_is_no_trouble(platform: Platform) -> None:
    create(platform, "x" * 100)
    listed = said(platform, "workspace", "ls", COLUMNS="40")
    assert "x" * 100 in listed
    assert "\x1b" not in listed
    for words in ("workspace ls", "settings", "workspace history " + create(platform, "read")):
        done = in_a_shell(platform, f"codehub {words} | true")
        assert b"Traceback" not in done.stderr, done.stderr


def test_destroying_is_asked_for_first_and_not_without_an_answer(platform: Platform) -> None:
    id_ = create(platform, "precious")
    done = in_a_shell(platform, f"codehub workspace rm {id_} --purge < /dev/null")
    assert done.returncode == 1
    assert b"for good" in done.stderr
    assert found(platform, "workspace", "open", id_)["id"] == id_
    assert in_a_shell(platform, f"echo y | codehub workspace rm {id_} --purge").returncode == 0


def test_without_a_platform_one_sentence_says_what_to_do(data_dir: pathlib.Path) -> None:
    env = {"CODEHUB_DATA_DIR": str(data_dir)}
    assert codehub("user", "add", "mina", **env).returncode == 0
    done = codehub("workspace", "start", "lab", **env)
    assert done.returncode == 1
    assert done.stderr.startswith(f"codehub: CodeHub does not run on {data_dir}: start it with `")
    assert len(done.stderr.splitlines()) == 1


def test_people_and_tokens_are_there_before_the_first_serve(data_dir: pathlib.Path) -> None:
    """By the same API, which lives as long as the command; and the directory is free again at its end."""
    env = {"CODEHUB_DATA_DIR": str(data_dir)}
    for words in ("user add mina", "token create mina", "user login-link mina", "workspace ls", "user add mina"):
        done = codehub(*words.split(), **env)
        assert done.returncode == (0 if words != "user add mina" or "Added" in done.stdout else 1), done.stderr
    assert done.stderr == "codehub: there is a user mina already\n"
    assert not subprocess.run(["pgrep", "-f", str(data_dir)], capture_output=True, text=True, check=False).stdout


def test_given_servers_need_no_platform_on_this_machine(
    data_dir: pathlib.Path, database_url: str, redis_url: str
) -> None:
    env = {
        "CODEHUB_DATA_DIR": str(data_dir),
        "CODEHUB_DATABASE_URL": database_url,
        "CODEHUB_REDIS_URL": redis_url,
        "CODEHUB_SECRET_KEY": "a-key-of-the-operators",
    }
    assert codehub("user", "add", "mina", **env).returncode == 0
    made = codehub("workspace", "create", "lab", "--owner", "mina", "--no-wait", "--template", "terminal", **env)
    assert made.returncode == 0, made.stderr
    assert "lab" in codehub("workspace", "ls", **env).stdout
