"""The files that pages use: kept by browsers for good, under an address that changes with them.

`/static/v-HASH/NAME` is what pages name; `/static/NAME` is the same for pages that are not ours, asked for each time.
"""

import functools
import hashlib
import importlib.resources
import os
import pathlib

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from codehub.policy.actions import Action

FOLDER = pathlib.Path(str(importlib.resources.files("codehub.web") / "static"))
MARK = "v-"


@functools.cache
def version() -> str:
    """Of all of them together: modules import each other by their names."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.iterdir()):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return f"{MARK}{digest.hexdigest()[:12]}"


def address() -> str:
    return f"/static/{version()}"


class Static(StaticFiles):
    """Another version than this process has, in the middle of an upgrade: the file as it is here, not to be kept."""

    action = Action.PUBLIC_STATIC

    def get_path(self, scope: Scope) -> str:
        path = super().get_path(scope)
        first, _, rest = path.partition("/")
        return rest if first.startswith(MARK) else path

    def file_response(
        self, full_path: "os.PathLike[str] | str", stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        for_good = f"/{version()}/" in scope["path"]
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if for_good else "no-cache"
        return response


def static_files() -> StaticFiles:
    return Static(directory=str(FOLDER))
