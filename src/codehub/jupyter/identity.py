"""Which JupyterLab a folder of static files belongs to: its version and a hash, as one word in an address.

The front door says which one it has, and the JupyterLab of a workspace compares it with its own, at every page. Only
where both are the same, the shared files are used.
"""

import hashlib
import json
import os
import pathlib
import re
import sysconfig

# What a page asks for. Not `index.html`, which is a template, and nothing that could be a page of its own.
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".eot": "application/vnd.ms-fontobject",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".wasm": "application/wasm",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
VERSION = re.compile(r"[0-9A-Za-z.]{1,32}")
LARGEST = 32 << 20  # bytes of one file


def platform_folder() -> pathlib.Path | None:
    """Of the JupyterLab that comes with this installation; None: there is none."""
    folder = pathlib.Path(sysconfig.get_path("data"), "share", "jupyter", "lab", "static")
    return folder if (folder / "index.html").is_file() else None


def files(folder: pathlib.Path) -> dict[str, int]:
    """Names and sizes of what pages may ask for. There are no folders inside: bundlers write flat."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if NAME.fullmatch(entry.name) and pathlib.PurePath(entry.name).suffix in KINDS and entry.is_file():
                found[entry.name] = entry.stat().st_size
    return {name: size for name, size in found.items() if size <= LARGEST}


def of(folder: pathlib.Path) -> str:
    """`4.6.6-0123456789abcdef`. Raises OSError where the folder cannot be read.

    The files themselves need not be read: their names hold a hash of what is in them, and the page names the first.
    """
    digest = hashlib.sha256((folder / "index.html").read_bytes())
    for name, size in sorted(files(folder).items()):
        digest.update(f"{name} {size}\n".encode())
    return f"{_version(folder)}-{digest.hexdigest()[:16]}"


def _version(folder: pathlib.Path) -> str:
    try:
        told = json.loads((folder / "package.json").read_bytes())["jupyterlab"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return "0"
    return told if isinstance(told, str) and VERSION.fullmatch(told) else "0"
