"""One place for JupyterLab's static files, for all workspaces: the front door answers it, and tells JupyterLab of it.

Below a domain of workspaces the place is a host of its own (`shared-files.`), which is no workspace's and has no
cookies: the platform's pages accept scripts of their own origin, and these are not among them. Where workspaces have no
origins, it is a path beside theirs.
"""

import pathlib

from codehub.gate.origins import Origins
from codehub.jupyter import identity
from codehub.jupyter.shared_files import PLAIN, SharedFiles
from codehub.proxy import answers
from codehub.proxy.model import Answer, Hold, Pair, RequestHead

LABEL = "shared-files"  # a workspace's id has no hyphen
PREFIX = b"/_codehub/jupyterlab/"
HEADER = b"X-Codehub-Jupyterlab"
MAKING_SECONDS = 30.0
UNKNOWN = answers.problem(404, "There is no such file.")
METHOD = answers.problem(405, "Files are only read.", None, (b"Allow", b"GET, HEAD"))
BUSY = answers.problem(503, "The file is not ready yet.", "UNAVAILABLE", (b"Retry-After", b"2"))
FIELDS: tuple[Pair, ...] = (
    (b"Cache-Control", b"public, max-age=31536000, immutable"),
    (b"Vary", b"Accept-Encoding"),
    # For pages of all workspaces; nothing in it is anybody's own.
    (b"Access-Control-Allow-Origin", b"*"),
    (b"Cross-Origin-Resource-Policy", b"cross-origin"),
    (b"Timing-Allow-Origin", b"*"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Content-Security-Policy", b"default-src 'none'; sandbox"),  # opened by itself, a picture does nothing
)


class LabFiles:
    """Of one worker."""

    def __init__(self, origins: Origins, shared: SharedFiles) -> None:
        self._origins = origins
        self._shared = shared

    def offer(self, host: bytes) -> Pair:
        """For the JupyterLab whose page is asked for at this `Host`."""
        origin = self._origins.of_workspace(LABEL, host.decode("latin-1")) or ""
        return HEADER, origin.encode() + PREFIX + self._shared.identity.encode()

    def answer(self, head: RequestHead, workspace: str | None) -> Answer | Hold:
        """`workspace`: whose origin it is asked for at, as the host says."""
        identity_, _, name = head.path[len(PREFIX) :].decode("latin-1").partition("/")
        here = workspace == LABEL if self._origins.isolated else workspace is None
        coding = self._shared.coding(name, head.get(b"accept-encoding").decode("latin-1"))
        if not here or coding is None or identity_ != self._shared.identity:
            return UNKNOWN
        if head.method not in (b"GET", b"HEAD"):
            return METHOD
        fields = self._fields(name, coding)
        if head.get(b"if-none-match") in (b"*", dict(fields)[b"ETag"]):
            return Answer(304, fields, b"")
        if made := self._shared.ready(name, coding):
            return Answer(200, fields, made)
        return Hold(self._with_body(name, coding, fields), MAKING_SECONDS, BUSY)

    def _fields(self, name: str, coding: str) -> tuple[Pair, ...]:
        coded = () if coding == PLAIN else ((b"Content-Encoding", coding.encode()),)
        kind = identity.KINDS[pathlib.PurePath(name).suffix]
        tag = f'"{self._shared.identity}/{name}/{coding}"'
        return ((b"Content-Type", kind.encode()), *coded, (b"ETag", tag.encode()), *FIELDS)

    async def _with_body(self, name: str, coding: str, fields: tuple[Pair, ...]) -> Answer:
        body = await self._shared.body(name, coding)
        return UNKNOWN if body is None else Answer(200, fields, body)


def of_platform(origins: Origins) -> LabFiles | None:
    """None: this installation has no JupyterLab, or not one that can be read."""
    folder = identity.platform_folder()
    try:
        return LabFiles(origins, SharedFiles(folder)) if folder else None
    except OSError:
        return None
