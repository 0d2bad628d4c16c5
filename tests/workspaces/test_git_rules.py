"""Which git addresses a workspace may begin with, and what is made of git's words."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.errors import InvalidRequestError
from codehub.workspaces import git_rules, repositories
from codehub.workspaces.git_rules import Complaint
from codehub.workspaces.model import FetchCause

GOOD = {
    "https://example.org/team/project.git": "project",
    "https://example.org/project": "project",
    "HTTPS://Example.org:8443/a/b/c_1.2+x/": "c_1.2+x",
    "https://127.0.0.1:4443/hello.git": "hello",
    "https://[::1]/hello.git": "hello",
    "https://example.org/~mina/x.git": "x",
}
BAD = {
    "": Complaint.SCHEME,
    "example.org/x.git": Complaint.SCHEME,
    "http://example.org/x.git": Complaint.SCHEME,
    "ssh://example.org/x.git": Complaint.SCHEME,
    "git@example.org:team/x.git": Complaint.SCHEME,
    "file:///etc/x": Complaint.SCHEME,
    "/etc/passwd": Complaint.SCHEME,
    "ext::sh -c touch% /tmp/x": Complaint.SCHEME,
    "--upload-pack=touch /tmp/x": Complaint.SCHEME,
    "-u": Complaint.SCHEME,
    "https://mina:secret@example.org/x.git": Complaint.CREDENTIALS,
    "https://ghp_token@example.org/x.git": Complaint.CREDENTIALS,
    "https://:@example.org/x.git": Complaint.CREDENTIALS,
    "http://mina:secret@example.org/x.git": Complaint.CREDENTIALS,
    "https://mina:secret@example.org/" + "x" * 600: Complaint.CREDENTIALS,
    "https://example.org/x.git?access_token=secret": Complaint.ADDRESS,
    "https://example.org/x.git#main": Complaint.ADDRESS,
    "https://example.org/x y.git": Complaint.ADDRESS,
    "https://example.org\\x/y.git": Complaint.ADDRESS,
    "https://example.org/x\n.git": Complaint.ADDRESS,
    "https://예시.org/x.git": Complaint.ADDRESS,
    "https:///x.git": Complaint.ADDRESS,
    "https://-oProxy/x.git": Complaint.ADDRESS,
    "https://example.org:99999/x.git": Complaint.ADDRESS,
    "https://example.org:/x.git": Complaint.ADDRESS,
    "https://example.org:port/x.git": Complaint.ADDRESS,
    "https://[zz]/x.git": Complaint.ADDRESS,
    "https://example.org": Complaint.NAME,
    "https://example.org/": Complaint.NAME,
    "https://example.org/.git": Complaint.NAME,
    "https://example.org/..": Complaint.NAME,
    "https://example.org/.ssh": Complaint.NAME,
    "https://example.org/-x.git": Complaint.NAME,
    "https://example.org/%2e%2e%2fx": Complaint.NAME,
    "https://example.org/" + "x" * 101: Complaint.NAME,
    "https://example.org/" + "x" * 600: Complaint.LONG,
}


@pytest.mark.parametrize(("address", "folder"), GOOD.items())
def test_an_address_that_can_be_fetched_from_names_its_folder(address: str, folder: str) -> None:
    assert git_rules.complaint(address) is None
    assert git_rules.folder_of(address) == folder


@pytest.mark.parametrize(("address", "complaint"), BAD.items())
def test_what_is_no_address_or_another_way_or_holds_a_secret_is_refused(address: str, complaint: Complaint) -> None:
    assert git_rules.complaint(address) is complaint


@given(st.text(max_size=80) | st.from_regex(r"https://[a-z@:.\-]{1,10}/[ -~]{0,20}", fullmatch=True))
def test_whatever_is_taken_begins_with_https_and_stays_in_the_home(address: str) -> None:
    if git_rules.complaint(address) is None:
        assert address.lower().startswith("https://")
        assert "@" not in address.split("/")[2]
        folder = git_rules.folder_of(address)
        assert folder
        assert folder[0] not in ".-"
        assert "/" not in folder


@pytest.mark.parametrize("branch", ["main", "v1.2", "feature/a", "브랜치", "a@b", "release-1"])
def test_the_name_of_a_branch_is_taken(branch: str) -> None:
    assert git_rules.branch_complaint(branch) is None


@pytest.mark.parametrize(
    "branch",
    [
        *("", "-x", "--upload-pack=x", "a b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b"),
        *(".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "a@{1}", "a\nb", "a\0", "x" * 201),
    ],
)
def test_what_git_would_not_take_for_a_branch_is_refused(branch: str) -> None:
    assert git_rules.branch_complaint(branch) is Complaint.BRANCH


def test_a_refusal_names_the_field_and_does_not_repeat_the_secret() -> None:
    with pytest.raises(InvalidRequestError, match="git_url: must not hold a name or a password") as caught:
        repositories.check("https://mina:hunter2@example.org/x.git", None)
    assert "hunter2" not in str(caught.value.detail) + str(caught.value.extra)
    with pytest.raises(InvalidRequestError, match="git_branch: "):
        repositories.check("https://example.org/x.git", "--help")
    with pytest.raises(InvalidRequestError, match="git_branch: "):
        repositories.check(None, "main")
    repositories.check("https://example.org/x.git", "main")
    repositories.check(None, None)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", FetchCause.LOGIN),
        ("fatal: Authentication failed for 'https://x/'", FetchCause.LOGIN),
        ("fatal: Remote branch nope not found in upstream origin", FetchCause.BRANCH),
        ("fatal: repository 'https://x/y/' not found", FetchCause.NOT_FOUND),
        ("fatal: write error: No space left on device", FetchCause.FULL),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", FetchCause.GIT),
        ("", FetchCause.GIT),
    ],
)
def test_gits_words_say_what_it_was(said: str, cause: FetchCause) -> None:
    assert git_rules.cause_of(said) is cause


def test_the_line_that_says_why_is_found_bounded_and_without_what_moves_a_terminal() -> None:
    output = "Cloning into 'x'...\n\x1b[31mfatal: no\x1b[0m\x07 way\nand then more\n\n"
    assert git_rules.last_line(output) == "fatal: no way"
    assert git_rules.last_line("one\ntwo\n") == "two"
    assert git_rules.last_line("") == ""
    assert len(git_rules.last_line("fatal: " + "x" * 5000)) == git_rules.LONGEST_SAID


def test_what_can_change_is_tried_again_so_many_times() -> None:
    pauses = [git_rules.pause_after(FetchCause.GIT, n) for n in (1, 2, 3)]
    assert pauses == [timedelta(seconds=5), timedelta(seconds=30), None]
    assert git_rules.pause_after(FetchCause.INTERRUPTED, 1) == timedelta()
    assert git_rules.pause_after(FetchCause.INTERRUPTED, 3) is None
    assert git_rules.pause_after(FetchCause.TAKEN, 1) is None
