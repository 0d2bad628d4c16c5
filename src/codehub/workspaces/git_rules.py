"""Which git addresses a workspace may begin with, what their folder is called, and what became of a clone. Pure.

An address is kept and shown, so nothing secret may be in it; and it is handed to a program, so nothing in it may be
taken for an option or for another way to fetch than HTTPS.
"""

import re
from datetime import timedelta
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from codehub.workspaces.model import FetchCause

LONGEST_ADDRESS, LONGEST_BRANCH, LONGEST_NAME = 500, 200, 100
LONGEST_SAID = 300
MOST_ATTEMPTS = 3
PAUSES = (timedelta(seconds=5), timedelta(seconds=30))  # after the first failure, and after each later one
HOST = re.compile(r"(?=[^.])[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
# What git itself forbids in the name of a branch, or gives another meaning.
IN_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)")
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f]")
LAST_PORT = 65535


class Complaint(StrEnum):
    """What is wrong with what was typed."""

    LONG = "LONG"
    SCHEME = "SCHEME"
    CREDENTIALS = "CREDENTIALS"
    ADDRESS = "ADDRESS"
    NAME = "NAME"
    BRANCH = "BRANCH"


SAID = {
    Complaint.LONG: f"at most {LONGEST_ADDRESS} characters",
    Complaint.SCHEME: "must begin with https://",
    Complaint.CREDENTIALS: "must not hold a name or a password: it is kept and shown. For a private repository "
    "make the workspace without it, and clone inside",
    Complaint.ADDRESS: "is not an address like https://example.org/team/project.git",
    Complaint.NAME: "must end in the repository's name: letters, digits and . _ + -, a letter or digit first",
    Complaint.BRANCH: f"is not the name of a branch or tag (at most {LONGEST_BRANCH} characters)",
}


def complaint(address: str) -> Complaint | None:
    """None: it can be fetched from."""
    scheme, found, rest = address.partition("://")
    if "@" in rest.partition("/")[0] or (not found and "@" in address and ":" in address):
        return Complaint.CREDENTIALS if found else Complaint.SCHEME  # `git@host:path` is SSH
    if len(address) > LONGEST_ADDRESS:
        return Complaint.LONG
    if scheme.lower() != "https" or not found:
        return Complaint.SCHEME
    if not (address.isascii() and address.isprintable()) or re.search(r"[\s\\\"'<>?#]", address):
        return Complaint.ADDRESS
    parts = _split(address)
    if parts is None:
        return Complaint.ADDRESS
    return None if NAME.fullmatch(_name(parts.path)) and len(_name(parts.path)) <= LONGEST_NAME else Complaint.NAME


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    empty_port = parts.netloc.endswith(":")
    if (
        empty_port
        or not HOST.fullmatch(host)
        or host.startswith("-")
        or (port is not None and not 0 < port <= LAST_PORT)
    ):
        return None
    return parts


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].removesuffix(".git")


def folder_of(address: str) -> str:
    """Of an address without complaint: as git would call it."""
    return _name(urlsplit(address).path)


def branch_complaint(branch: str) -> Complaint | None:
    bad = (
        len(branch) > LONGEST_BRANCH
        or IN_NO_BRANCH.search(branch)
        or branch.startswith(("-", "/", "."))
        or branch.endswith(("/", "."))
        or branch == "@"
        or not branch
    )
    return Complaint.BRANCH if bad else None


# --- how it went ----------------------------------------------------------------------------------------------------

FINAL = frozenset(
    {
        FetchCause.NO_GIT,
        FetchCause.NO_NETWORK,
        FetchCause.TAKEN,
        FetchCause.LOGIN,
        FetchCause.NOT_FOUND,
        FetchCause.BRANCH,
        FetchCause.TIME,
    }
)
# By git's own words, in English: the process is told to speak it.
WORDS = (
    (
        re.compile(r"could not read (Username|Password)|terminal prompts disabled|Authentication failed"),
        FetchCause.LOGIN,
    ),
    (re.compile(r"Remote branch .* not found"), FetchCause.BRANCH),
    (re.compile(r"repository .* not found|does not appear to be a git repository"), FetchCause.NOT_FOUND),
    (re.compile(r"No space left|[Dd]isk quota"), FetchCause.FULL),
)


def cause_of(said: str) -> FetchCause:
    return next((cause for pattern, cause in WORDS if pattern.search(said)), FetchCause.GIT)


def last_line(output: str) -> str:
    """The line that says why: git's last complaint, else the last word."""
    lines = [line for raw in output.splitlines() if (line := CONTROL.sub("", raw).strip())]
    complaints = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (complaints or lines or [""])[-1][:LONGEST_SAID]


def pause_after(cause: FetchCause, attempts: int) -> timedelta | None:
    """How long to wait before trying again after so many attempts; None: it is given up."""
    if cause in FINAL or attempts >= MOST_ATTEMPTS:
        return None
    if cause is FetchCause.INTERRUPTED:
        return timedelta()  # as soon as it runs again
    return PAUSES[min(attempts, len(PAUSES)) - 1]
