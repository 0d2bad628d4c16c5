"""Clones a git repository inside a workspace: as its user, within its walls, by its network. Called by `fetch_loop`.

The platform itself fetches nothing: an address that a person gives leads no further than their workspace does. The
clone is made aside and put in place by one rename, with a mark: who comes after a crash knows what is ours.
"""

from dataclasses import dataclass

from codehub.runtimes.base import ExecResult, Runtime, RuntimeFailureError
from codehub.workspaces import git_rules
from codehub.workspaces.model import FetchCause

SECONDS = 900.0
CLEARING_SECONDS = 60.0
OUTPUT_BYTES = 16 * 1024
NO_GIT, TAKEN = 81, 82
# The arguments: address, branch or nothing, folder, the request's id, the attempt. Nobody is asked for a password.
SCRIPT = f"""
export GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=https GIT_ASKPASS= SSH_ASKPASS= LC_ALL=C
url=$1 branch=$2 folder=$3 id=$4 aside=.codehub-fetch-$4-$5
there() {{ [ -e "$1" ] || [ -L "$1" ]; }}
ours() {{ [ "$(cat "$folder/.git/codehub-fetch" 2>/dev/null)" = "$id" ]; }}
cd || exit
rm -rf -- .codehub-fetch-*
if there "$folder"; then ours && exit; exit {TAKEN}; fi
command -v git >/dev/null || exit {NO_GIT}
set --
if [ -n "$branch" ]; then set -- --branch "$branch"; fi
git clone --quiet "$@" -- "$url" "$aside" </dev/null || {{ code=$?; rm -rf -- "$aside"; exit $code; }}
printf %s "$id" >"$aside/.git/codehub-fetch" || exit
mv -nT -- "$aside" "$folder" || exit
there "$aside" || exit 0
rm -rf -- "$aside"
ours || exit {TAKEN}
"""
CLEAR = "cd && rm -rf -- .codehub-fetch-*"


@dataclass(frozen=True)
class Wanted:
    workspace_id: str
    fetch_id: str
    url: str
    branch: str | None
    folder: str
    attempts: int  # with this one


@dataclass(frozen=True)
class Result:
    cause: FetchCause | None  # None: it is there
    said: str = ""


async def fetch(runtime: Runtime, wanted: Wanted, seconds: float = SECONDS) -> Result:
    arguments = (wanted.url, wanted.branch or "", wanted.folder, wanted.fetch_id, str(wanted.attempts))
    try:
        done = await _run(runtime, wanted.workspace_id, SCRIPT, *arguments, seconds=seconds)
        if done.timed_out:
            await _run(runtime, wanted.workspace_id, CLEAR, seconds=CLEARING_SECONDS)
    except RuntimeFailureError as e:
        return Result(FetchCause.INTERRUPTED, e.detail)
    if done.exit_code == 0:
        return Result(None)
    said = git_rules.last_line(done.output.decode("utf-8", "replace"))
    if done.timed_out:
        return Result(FetchCause.TIME, said)
    if await runtime.container(wanted.workspace_id) is None:
        return Result(FetchCause.INTERRUPTED, said)
    known = {NO_GIT: FetchCause.NO_GIT, TAKEN: FetchCause.TAKEN}
    return Result(known.get(done.exit_code) or git_rules.cause_of(said), said)


async def _run(runtime: Runtime, workspace_id: str, script: str, *arguments: str, seconds: float) -> ExecResult:
    return await runtime.exec(
        workspace_id,
        ["sh", "-c", script, "fetch", *arguments],
        timeout_seconds=seconds,
        max_output=OUTPUT_BYTES,
        contained=True,
    )
