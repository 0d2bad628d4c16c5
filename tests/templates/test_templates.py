"""Templates: which files are read, which are refused and with what words, which can be started here."""

import pathlib
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.errors import InvalidRequestError, SettingsError
from codehub.i18n.texts import LANGUAGES
from codehub.templates import loader, programs
from codehub.templates.expand import NAMES, expand, uses_port
from codehub.templates.loader import Templates
from codehub.templates.model import ActivityProfile, Network, ResourceLimits

VALUES = {name: f"<{name}>" for name in NAMES}
GOOD = 'title = "T"\n[process]\ncommand = ["true"]\n'
WRONG = {
    "title =": "is not valid TOML",
    "": "title: is missing",
    'title = " "\n[process]\ncommand = ["true"]': "title: must not be empty",
    'title = "T"': "process: is missing, and so is container",
    'title = "T"\n[process]\nenv = {}': "process.command: is missing",
    'title = "T"\n[process]\ncommand = []': "process.command: is missing",
    'title = "T"\n[process]\ncommand = "jupyter lab"': "process.command: must be a list of words in quotes",
    'title = "T"\n[process]\ncommand = ["a", 1]': "process.command: must be a list of words in quotes",
    'title = "T"\nprocess = "x"': "process: must be a table",
    'titel = "T"': "titel: is not a known key; did you mean title?",
    'name = "other"\ntitle = "T"': "name: is not a known key",
    GOOD + "comand = []": "process.comand: is not a known key; did you mean command?",
    GOOD + "env = { A = 1 }": "process.env: must be a table of names and texts in quotes",
    GOOD + 'env = { "A-B" = "1" }': "process.env: A-B cannot be the name of an environment variable",
    GOOD + 'network = "some"': "process.network: must be one of internet, allowlist, none, host",
    GOOD + 'allow = ["mirror.test"]': 'process: allow goes with network = "allowlist"',
    GOOD + 'network = "allowlist"\nallow = ["http://a"]': "process: http://a: what follows the colon is not a port",
    GOOD + 'paths = ["opt"]': "process: paths must be absolute, and opt is not",
    GOOD + "warm = 1": "process.warm: must be true or false",
    GOOD + 'preload = "numpy"': "process.preload: must be a list of words in quotes",
    GOOD + 'preload = ["numpy"]': "process: preload goes with warm = true",
    GOOD + 'kernels = ["numpy"]': "process: kernels goes with warm = true",
    GOOD + 'warm = true\nkernels = ["a b"]': "process: kernels must name Python modules, and a b is none",
    GOOD + 'warm = true\npreload = ["a b"]': "process: preload must name Python modules, and a b is none",
    GOOD + 'warm = true\npreload = ["a..b"]': "process: preload must name Python modules, and a..b is none",
    'activity_profile = "emacs"\n' + GOOD: "activity_profile: must be one of vscode, jupyter, plain",
    "strip_prefix = 1\n" + GOOD: "strip_prefix: must be true or false",
    'ready = "api"\n' + GOOD: "ready: must begin with /",
    "start_seconds = true\n" + GOOD: "start_seconds: must be a number",
    "standby_ttl_seconds = 1.5\n" + GOOD: "standby_ttl_seconds: must be a whole number",
    GOOD + "[limits]\nmemory_mb = -1": "limits.memory_mb: must not be negative",
    GOOD + '[limits]\nmemory_mb = "2G"': "limits.memory_mb: must be a whole number",
    GOOD + '[container]\nimage = "i"\nport = 0': "container: port is missing",
    GOOD + '[container]\nimage = "i"\nport = 70000': "container: port must be between 1 and 65535",
    GOOD + "[container]\nport = 80": "container.image: is missing",
    GOOD + '[container]\nimage = "-v /:/x"\nport = 80': "container: image must be a name",
    GOOD + '[container]\nimage = "i"\nport = 80\nuser = "root"': "container: user must be a number",
    GOOD + '[container]\nimage = "i"\nport = 80\nuser = "0"': "container: user must be a number",
    GOOD + '[container]\nimage = "i"\nport = 80\nnetwork = "host"': "container: network can be internet or none",
    GOOD + '[docker]\nimage = "i"': "docker: is not a known key",
    GOOD + "[kubernetes]": "kubernetes: is not a known key",
    GOOD + "[ja]": "ja: is not a known key",
    "ko = 1\n" + GOOD: "ko: must be a table, [ko]",
    "description = 1\n" + GOOD: "description: must be text in quotes",
    f'description = "{"x" * 301}"\n' + GOOD: "description: must have at most 300 characters",
    'description = "a\\nb"\n' + GOOD: "description: has a character that cannot be seen",
    GOOD + f'[ko]\ndescription = "{"가" * 301}"': "ko.description: must have at most 300 characters",
    GOOD + '[ko]\ntitle = "\\u200b"': "ko.title: has a character that cannot be seen",
    GOOD + '[ko]\nname = "x"': "ko.name: is not a known key",
    "starter_files = []\n" + GOOD: "starter_files: is not a known key; did you mean starter?",
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "templates").mkdir()
    return tmp_path / "templates"


def load(folder: pathlib.Path | None) -> Templates:
    return Templates.load(folder, pathlib.Path("/nonexistent"))


def test_the_built_in_ones_are_there_and_start_with_nothing_installed_but_this_package() -> None:
    found = load(None)
    assert {template.name for template in found.all()} == {"code-server", "jupyterlab", "terminal"}
    assert found.unavailable("jupyterlab") is None
    assert found.unavailable("terminal") is None
    assert found.require("jupyterlab").activity_profile is ActivityProfile.JUPYTER


@pytest.mark.parametrize(("text", "complaint"), WRONG.items(), ids=WRONG.values())
def test_a_wrong_file_is_refused_in_one_line_that_names_it_and_the_key(
    folder: pathlib.Path, text: str, complaint: str
) -> None:
    (folder / "mine.toml").write_text(text)
    with pytest.raises(SettingsError) as refused:
        load(folder)
    assert f"{folder}/mine.toml: {complaint}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_key_of_a_file_arrives(folder: pathlib.Path) -> None:
    (folder / "mine.toml").write_text(
        'title = "Mine"\nactivity = "connections"\nwake_on = "any"\nready = "/up"\nstart_seconds = 5\n'
        "standby_ttl_seconds = 60\n"
        '[process]\ncommand = ["true", "{port}"]\nenv = { A = "{home}" }\nnetwork = "none"\npaths = ["/srv"]\n'
        '[container]\nimage = "i"\nport = 80\n[limits]\nmemory_mb = 1\nprocesses = 2\ncpus = 1.5\ndisk_mb = 4\n'
    )
    template = load(folder).require("mine")
    assert template.process
    assert (template.process.network, template.process.paths) == (Network.NONE, ("/srv",))
    assert (template.start_seconds, template.standby_ttl_seconds) == (5.0, 60)
    assert template.limits == ResourceLimits(1, 2, 1.5, 4)


def test_a_template_says_what_it_is_in_the_readers_language_as_far_as_it_knows_it(folder: pathlib.Path) -> None:
    (folder / "mine.toml").write_text(
        'title = "Mine"\ndescription = "All mine."\n' + GOOD[12:] + '[ko]\ntitle = "내 것"\n'
    )
    template = load(folder).require("mine")
    assert (template.title_in("en"), template.title_in("ko")) == ("Mine", "내 것")
    assert (template.description_in("en"), template.description_in("ko")) == ("All mine.", "All mine.")


def test_the_built_in_ones_have_a_sentence_in_every_language() -> None:
    for template in load(None).all():
        assert len({template.description_in(language) for language in LANGUAGES} - {""}) == len(LANGUAGES)


@pytest.mark.parametrize("name", ["Mine", "my_ide", "-x", "a.b", "x" * 64])
def test_a_files_name_must_be_a_label(folder: pathlib.Path, name: str) -> None:
    (folder / f"{name}.toml").write_text(GOOD)
    with pytest.raises(SettingsError, match="lower-case"):
        load(folder)


def test_one_of_the_same_name_goes_before_the_built_in_one(folder: pathlib.Path) -> None:
    (folder / "jupyterlab.toml").write_text(GOOD)
    assert load(folder).require("jupyterlab").title == "T"


def test_a_folder_that_is_not_there_stops_the_start(folder: pathlib.Path) -> None:
    with pytest.raises(SettingsError, match="CODEHUB_TEMPLATES_DIR"):
        load(folder / "nowhere")


def test_a_template_without_its_program_is_listed_with_the_reason(folder: pathlib.Path) -> None:
    (folder / "mine.toml").write_text(GOOD.replace("true", "no-such-ide"))
    (folder / "image.toml").write_text('title = "I"\n[container]\nimage = "i"\nport = 80\n')
    found = load(folder)
    assert found.find("mine")
    assert found.unavailable("mine") == "no-such-ide is not installed"
    assert found.unavailable("image") == "image has no [process] section"
    with pytest.raises(InvalidRequestError, match="no-such-ide is not installed"):
        found.require("mine")
    with pytest.raises(InvalidRequestError, match="there is no template 'other'"):
        found.require("other")


def test_an_ide_installed_below_the_data_directory_is_found_first(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "ide" / "code-server" / "bin" / "code-server"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert programs.find("code-server", tmp_path) == str(program)
    assert Templates.load(None, tmp_path).unavailable("code-server") is None


def test_the_built_in_files_are_plain_toml_with_a_socket_only_the_proxy_can_use() -> None:
    for path in loader.BUILTIN.glob("*.toml"):
        command = tomllib.loads(path.read_text())["process"]["command"]
        assert any("{socket}" in word for word in command), path.name


@given(st.text(alphabet="ab{}$%_ocketsprhmid", max_size=60))
def test_only_the_five_names_are_replaced(text: str) -> None:
    expected = text
    for name in NAMES:
        expected = expected.replace("{" + name + "}", VALUES[name])
    assert expand(text, VALUES) == expected


def test_what_was_put_in_is_not_expanded_again() -> None:
    assert expand("{home}{x}{socket", {**VALUES, "home": "{socket}"}) == "{socket}{x}{socket"


def test_a_port_is_used_only_when_it_is_named() -> None:
    assert uses_port(("serve", "--port={port}"))
    assert not uses_port(("serve", "{socket}", "{{ports}"))
