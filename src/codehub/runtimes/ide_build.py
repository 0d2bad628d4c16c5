"""Puts an IDE together, in a folder aside: a process that `ide_install` starts under a user that owns nothing else.

What it is made of is other people's code, and some of that runs while it is built. What to do comes as JSON on the
standard input; each step is told, one line of JSON, on the standard output; what tools say goes to the error output,
which is the log. Each step is noted when done, so that a second try goes on where the first one ended.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codehub.errors import StartError
from codehub.runtimes import code_server, files
from codehub.runtimes.code_server import Step
from codehub.runtimes.shepherd import tree
from codehub.system import kernel

COMPLAINT = re.compile(r"(^|\s)(fatal error|error): ")
LOG = 2
READ_BYTES = 1 << 20  # of what a step said, its end
LONGEST_REASON = 500
FAILED = 1

Say = Callable[[Mapping[str, Any]], None]


class StepFailedError(StartError):
    """`step` is as it was told; `said` the line that says why."""

    code = "STEP_FAILED"

    def __init__(self, step: Mapping[str, Any], exit_code: int, said: str) -> None:
        super().__init__(f"{step['title']} failed (exit code {exit_code}): {said}")
        self.told, self.said = step, said


async def build(aside: pathlib.Path, environment: Mapping[str, str], config: Mapping[str, str], say: Say) -> None:
    """`config`: files of the operator's home that say where to fetch from. They are gone before anything runs."""
    home = aside / "home"
    cache = aside / "cache" / "tmp"
    cache.mkdir(parents=True, exist_ok=True)
    base = {**environment, "HOME": str(home), "TMPDIR": str(cache)}
    recipe = code_server.Build(aside, base)
    _write_program(aside / "tools" / "npm", code_server.NPM)
    files.remove_tree(home)
    for name, text in config.items():
        (home / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    try:
        await carry_out(recipe.fetching(), aside, LOG, say)
    finally:
        files.remove_tree(home)
    home.mkdir(mode=0o700)
    await carry_out(recipe.building(), aside, LOG, say)
    recipe.link()
    _write_program(aside / "bin" / "code-server", code_server.LAUNCHER)
    trial = Step("try", "Trying it", [str(aside / "bin" / "code-server"), "--version"], base)
    say(told(trial))
    await _run(trial, LOG)


async def carry_out(steps: Sequence[Step], aside: pathlib.Path, log: int, say: Say) -> None:
    """Do what is not done yet."""
    for step in steps:
        mark = aside / f".done-{step.name}"
        say(told(step, before=mark.exists()))
        if not mark.exists():
            await _run(step, log)
            mark.touch()


def told(step: Step, *, before: bool = False) -> dict[str, Any]:
    return {"code": step.code or step.name, "data": dict(step.data), "title": step.title, "before": before}


async def _run(step: Step, log: int) -> None:
    """What it prints goes into the log; a failure is an error with the line that says why."""
    os.write(log, f"== {step.title}\n".encode())
    begin = os.fstat(log).st_size
    process = await asyncio.create_subprocess_exec(
        *step.command,
        env=dict(step.environment),
        cwd=step.directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        umask=0o022,  # workspaces' users read what is installed
    )
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        end = os.fstat(log).st_size
        said = os.pread(log, READ_BYTES, max(begin, end - READ_BYTES)).decode(errors="replace").splitlines()
        raise StepFailedError(told(step), code, reason(said))


def reason(lines: Sequence[str]) -> str:
    """The line of a tool's output that says what went wrong: a compiler's first error, or the last word."""
    spoken = [line.strip() for line in lines if line.strip()]
    complaints = [line for line in spoken if COMPLAINT.search(line)]
    return (complaints or spoken[-1:] or ["it said nothing"])[0][:LONGEST_REASON]


def _write_program(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


# --- the process ----------------------------------------------------------------------------------------------------


def _say(line: Mapping[str, Any]) -> None:
    print(json.dumps(line), flush=True)  # noqa: T201 (who started us reads it)


async def _until_told_to_stop(wanted: Mapping[str, Any]) -> None:
    work = asyncio.ensure_future(
        build(pathlib.Path(wanted["aside"]), wanted["environment"], wanted["config"], _say),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await work


def main() -> int:
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # whoever forks away is found at the end
    os.umask(0o022)
    wanted: Mapping[str, Any] = {}
    try:
        wanted = json.load(sys.stdin)
        asyncio.run(_until_told_to_stop(wanted))
    except StepFailedError as e:
        _say({"failed": e.detail, "step": e.told, "said": e.said})
        return FAILED
    except (asyncio.CancelledError, KeyboardInterrupt):
        return FAILED
    except (OSError, ValueError, StartError) as e:
        _say({"failed": str(e), "step": None, "said": str(e)})
        return FAILED
    finally:
        _end_others(own_user=wanted.get("own_user"))
    return 0


def _end_others(*, own_user: int | None) -> None:
    """Whatever was started. Under a number of our own, everybody else who has it: no list of processes is complete
    while they come and go.
    """
    with contextlib.suppress(OSError):
        if own_user and os.getuid() == own_user:
            os.kill(-1, signal.SIGKILL)  # all that this user may end, but for the one who asks
        else:
            tree.kill_descendants(os.getpid())


if __name__ == "__main__":
    sys.exit(main())
