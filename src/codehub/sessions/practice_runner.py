"""What a PRACTICE asks of a workspace, done through the runtime: starter files are put there, checks are run.

Called by `practice_loop` for each task it has claimed; the result goes back there. It knows no database. Whatever a
learner's program does becomes a result of its check.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from codehub.archives.model import Quota
from codehub.clock import Clock
from codehub.runtimes.base import ExecResult, HomeFullError, Runtime, RuntimeFailureError

OUTPUT_BYTES = 16 * 1024  # of each check
ATTEMPTS, PAUSE_SECONDS = 3, 0.2
# Colours, titles and cursor movements (ECMA-48): CSI, OSC, and escapes of two signs.
_terminal = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
LEAST_SECONDS = 1.0  # what is left of a step's time: with less, a check is not begun


class Outcome(StrEnum):
    """How a task ended, as the API is told."""

    DONE = "done"
    NOT_RUNNING = "not_running"  # the workspace
    HOME_FULL = "home_full"
    REFUSED = "refused"  # something in the home is in the way
    SUPERSEDED = "superseded"  # not begun: its run has ended or was taken over
    FAILED = "failed"  # for a reason of ours: the same again may work


Result = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    id: str
    command: str
    seconds: float


@dataclass(frozen=True)
class Files:
    contents: Mapping[str, str]
    delivered: Mapping[str, Collection[str]]  # digests, by path
    quota: Quota

    def digests(self) -> dict[str, str]:
        return {path: sha256(text.encode()).hexdigest() for path, text in self.contents.items()}


def failed(detail: str) -> Result:
    return {"outcome": Outcome.FAILED, "detail": detail}


def superseded() -> Result:
    return {"outcome": Outcome.SUPERSEDED}


async def put_files(runtime: Runtime, workspace_id: str, files: Files) -> Result:
    if await runtime.container(workspace_id) is None:
        return {"outcome": Outcome.NOT_RUNNING}
    contents = {path: text.encode() for path, text in files.contents.items()}
    try:
        put = await runtime.put(workspace_id, contents, delivered=files.delivered, quota=files.quota)
    except HomeFullError as e:
        return {"outcome": Outcome.HOME_FULL, "detail": e.detail}
    except RuntimeFailureError as e:
        return {"outcome": Outcome.REFUSED, "detail": e.detail}
    shown = [{"path": one.path, "put": one.outcome, "as": one.name} for one in put]
    return {"outcome": Outcome.DONE, "files": shown}


async def run_checks(
    runtime: Runtime, workspace_id: str, checks: Collection[Check], clock: Clock, seconds: float
) -> Result:
    """One after the other, all of them; `seconds` for all together."""
    deadline = clock.monotonic() + seconds
    shown: list[dict[str, Any]] = []
    for check in checks:
        left = deadline - clock.monotonic()
        if left < LEAST_SECONDS:
            late = f"not run: the checks of a step have {seconds:g} s together"
            shown.append({"id": check.id, "exit_code": None, "output": late, "timed_out": True, "left_out": 0})
            continue
        result = await _run(runtime, workspace_id, check, min(check.seconds, left), clock)
        if result is None:
            return {"outcome": Outcome.NOT_RUNNING}
        shown.append(
            {
                "id": check.id,
                "exit_code": result.exit_code,
                "output": shown_text(result.output, cut=result.truncated),
                "timed_out": result.timed_out,
                "left_out": result.left_out,
            }
        )
    return {"outcome": Outcome.DONE, "checks": shown}


async def _run(runtime: Runtime, workspace_id: str, check: Check, seconds: float, clock: Clock) -> ExecResult | None:
    """None: the workspace does not run."""
    said = ""
    for _ in range(ATTEMPTS):
        try:
            return await runtime.exec(
                workspace_id,
                ["sh", "-c", check.command],
                timeout_seconds=seconds,
                max_output=OUTPUT_BYTES,
                contained=True,
            )
        except RuntimeFailureError as e:
            said = e.detail
        await clock.sleep(PAUSE_SECONDS)  # a workspace that is ending takes its processes first
        if await runtime.container(workspace_id) is None:
            return None
    # It runs, and the check cannot: most likely what runs in there leaves no memory or processes to start it.
    return ExecResult(-1, f"the check could not be run: {said}".encode())


def shown_text(output: bytes, *, cut: bool = False) -> str:
    """As it can be stored and shown: without what colours a terminal; what is no text is marked.

    `cut`: it begins anywhere, also in the middle of a letter.
    """
    start = next((i for i, byte in enumerate(output[:4]) if byte & 0xC0 != 0x80), 0) if cut else 0
    text = output[start:].decode("utf-8", errors="replace")
    return _terminal.sub("", text).replace("\0", "\ufffd")
