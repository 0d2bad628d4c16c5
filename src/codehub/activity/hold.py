"""`codehub hold`, inside a workspace: keep it awake for a while, or for as long as a command runs."""

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable
from datetime import datetime

from codehub.errors import CodeHubError, InvalidRequestError

# The names stand in `hold_server`, too; this runs inside workspaces and imports as little as it can.
TOKEN, SOCKET = "CODEHUB_HOLD_TOKEN", "CODEHUB_HOLD_SOCKET"
PART = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
WHILE_RUNNING_SECONDS, RENEW_SECONDS = 240, 60
ANSWER_SECONDS = 10
Complain = Callable[[str], object]


def seconds_of(text: str) -> float:
    """`2h`, `90m`, `1h30m`."""
    parts = PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InvalidRequestError("must be a time like 2h, 90m or 1h30m", field="time")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def ask(seconds: float, reason: str) -> datetime:
    """Until when it is kept awake."""
    path, token = os.environ.get(SOCKET), os.environ.get(TOKEN)
    if not path or not token:
        raise CodeHubError("this only works inside a workspace")
    request = json.dumps({"token": token, "seconds": seconds, "reason": reason}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(ANSWER_SECONDS)
            door.connect(path)
            door.sendall(request)
            answer = json.loads(door.makefile("rb").readline() or b"{}")
    except (OSError, ValueError) as e:
        raise CodeHubError(f"the platform does not answer: {e}") from e
    if "until" not in answer:
        raise CodeHubError(answer.get("error", "the platform is not ready: try again in a moment"))
    return datetime.fromisoformat(answer["until"])


def run(command: list[str], reason: str, complain: Complain) -> int:
    """The command's exit code; meanwhile the workspace stays awake."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(RENEW_SECONDS):
            _try(reason, complain)

    _try(reason, complain)
    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as e:
        raise CodeHubError(f"cannot run {command[0]}: {e.strerror}") from e
    finally:
        over.set()


def _try(reason: str, complain: Complain) -> None:
    """A command that could not be held awake runs all the same."""
    try:
        ask(WHILE_RUNNING_SECONDS, reason)
    except CodeHubError as e:
        complain(f"codehub: not kept awake: {e.detail}\n")
