"""What the form of a new workspace says of each kind."""

import pathlib

import pytest

from codehub.command import operator
from codehub.i18n.locales import Locale
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.runtimes.limits import Limits
from codehub.settings import ShareConfig
from codehub.templates.loader import Templates
from codehub.web import kinds_view
from codehub.web.texts import TEXTS

ENGLISH, KOREAN = (Locale(language, None, TEXTS[language]) for language in ("en", "ko"))
NOWHERE = pathlib.Path("/nonexistent")


@pytest.mark.parametrize(
    ("allowed", "english", "korean"),
    [
        (Limits(2048, 1024, disk_mb=10_240), "2 GB of memory · up to 1024 processes · 10 GB of disk", "2GB"),
        (Limits(1536, 0, disk_mb=700), "1.5 GB of memory · 700 MB of disk", "1.5GB"),
        (Limits(), "", ""),
    ],
)
def test_resources_are_said_as_they_were_written_and_without_what_has_no_limit(
    allowed: Limits, english: str, korean: str
) -> None:
    assert kinds_view.takes(allowed, ENGLISH) == english
    assert korean in kinds_view.takes(allowed, KOREAN).replace(" ", "")


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ([], ""),
        (["a"], "Begins with a"),
        (["a/1", "a/2", "b"], "Begins with a/, b"),
        (["a", "b", "c", "d", "e"], "Begins with a, b, c and 2 more"),
    ],
)
def test_starter_files_are_named_by_their_top(paths: list[str], said: str) -> None:
    assert kinds_view.begins_with(paths, ENGLISH) == said


def test_what_can_be_made_comes_first_and_the_rest_says_what_to_do_to_those_who_can(tmp_path: pathlib.Path) -> None:
    (tmp_path / "code-server.toml").write_text('title = "VS Code"\n[process]\ncommand = ["code-server"]\n')
    (tmp_path / "away.toml").write_text('title = "Away"\n[container]\nimage = "i"\nport = 80\n')
    (tmp_path / "emacs.toml").write_text('title = "Emacs"\n[process]\ncommand = ["no-such-emacs"]\n')
    templates = Templates.load(tmp_path, NOWHERE)
    admin = {k.name: k for k in kinds_view.kinds(templates, ShareConfig(), ENGLISH, operator())}
    assert list(admin)[:2] == ["jupyterlab", "terminal"]
    assert admin["jupyterlab"].available
    assert admin["jupyterlab"].takes
    assert (admin["code-server"].command or "").endswith("ide install code-server")
    assert "no-such-emacs" in admin["emacs"].missing
    assert "[process]" in admin["away"].missing
    learner = Principal("mina", Role.LEARNER, ALL_SCOPES)
    seen = {k.name: k for k in kinds_view.kinds(templates, ShareConfig(), ENGLISH, learner)}
    for name in ("code-server", "away", "emacs"):
        assert (seen[name].missing, seen[name].command) == ("Not installed here. Your admin can install it.", None)
