"""JupyterLab: it polls for as long as its tab is visible, and saves its window layout while it is at it.

Kernels and terminals talk through WebSockets of their own, and only when something happens; the events socket repeats
what the polling causes. A key typed into a cell is sent nowhere before the notebook is saved, within two minutes.
"""

import re

from codehub.activity.model import Kind
from codehub.activity.profiles.base import Followers, Tell, uniform

# Asked for again and again by a tab that no person touches.
POLLED = re.compile(
    rb"/(api/(kernels|terminals|sessions|kernelspecs|me|status|metrics|nbconvert|config/.*)(/[^/]*)?"
    rb"|api/contents/.*/checkpoints|lab/api/.*|lsp/status)"
)
LISTING = b"/api/contents"


class Jupyter:
    by_query: tuple[bytes, ...] = (LISTING,)

    def request(self, method: bytes, path: bytes, query: bytes) -> Kind:
        if method == b"GET":
            if path.startswith(LISTING) and not path.endswith(b"/checkpoints"):
                return Kind.POLLING if b"content=0" in query else Kind.BROWSING
            if POLLED.fullmatch(path):
                return Kind.POLLING
        if method == b"PUT" and path.startswith(b"/lab/api/workspaces/"):
            return Kind.POLLING
        return Kind.REQUEST

    def followers(self, path: bytes, _query: bytes, say: Tell, hear: Tell) -> Followers:
        if path.startswith(b"/api/events"):
            return uniform(Kind.HOUSEKEEPING, say, hear)
        if path.startswith(b"/terminals/"):
            return uniform(Kind.TERMINAL, say, hear)
        if path.startswith(b"/api/kernels/"):
            return uniform(Kind.KERNEL, say, hear)
        return uniform(Kind.MESSAGE, say, hear)
