"""Which node this is: an id that is made once in the data directory and moves with it. Read by `process`."""

import contextlib
import os
import pathlib
import secrets

from codehub import ids

NODE_FILE = "node-id"


def node_of(data_dir: pathlib.Path) -> str:
    """Two processes that make it at the same time agree: the first link wins."""
    file = data_dir / NODE_FILE
    with contextlib.suppress(FileNotFoundError):
        return file.read_text(encoding="ascii").strip()
    data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
    fresh = file.with_name(f"{NODE_FILE}.{secrets.token_hex(4)}")
    fresh.write_text(f"{ids.new(16)}\n", encoding="ascii")
    try:
        os.link(fresh, file)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return file.read_text(encoding="ascii").strip()
