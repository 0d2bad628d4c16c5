"""Programs that behave and programs that do not, as templates: Python scripts, run by whatever runtime is tested."""

import textwrap

from codehub.runtimes.base import Workload
from codehub.templates.model import ContainerSpec, ProcessSpec, ResourceLimits, Template

IMAGE = "codehub/terminal"
SERVER = """
import http.server, os, signal, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{os.getpid()} {self.path}".encode()
        self.send_response(503 if self.path.endswith("/sick") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
    def address_string(self): return "proxy"
class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
print("serving", flush=True)
Server(sys.argv[1], Handler).serve_forever()
"""
STUBBORN = "import signal\nfor n in (15, 2, 1): signal.signal(n, signal.SIG_IGN)\n" + SERVER
# Leaves children behind in every way there is, then goes on serving.
FORKING = (
    """
import os, time
def away(depth):
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    time.sleep(10_000)
for depth in range(5): away(depth)
"""
    + SERVER
)
# A job that computes, and an IDE beside it that is quiet.
COMPUTING = "import os\nif os.fork() == 0:\n while True: pass\n" + SERVER
DAEMON = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(10_000)"
HANGING = "import time\nprint('thinking', flush=True)\ntime.sleep(10_000)"
FLOOD = """
import os
line = (b"x" * 99 + b"\\n") * 10_000
for _ in range(200): os.write(1, line)
print("the last line", flush=True)
import time; time.sleep(10_000)
"""
HOG = """
import time
print("eating", flush=True)
kept = []
for _ in range(200):  # ends somewhere, should nobody end it
    kept.append(bytearray(8 << 20))
    time.sleep(0.002)
time.sleep(10_000)
"""
# Forks until it may not, says how far it came, and keeps what it has.
BOMB = """
import os, time
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            time.sleep(10_000)
        made += 1
except OSError as e:
    print("stopped at", made, e.errno, flush=True)
time.sleep(10_000)
"""


def python(script: str, *arguments: str, limits: ResourceLimits | None = None, name: str = "test") -> Template:
    command = ("python3", "-u", "-c", textwrap.dedent(script), *arguments)
    return Template(
        name=name,
        title=name,
        process=ProcessSpec(command),
        container=ContainerSpec(IMAGE, command, port=0 if arguments else 8080),
        limits=limits or ResourceLimits(),
    )


def server(**kwargs: ResourceLimits) -> Template:
    return python(SERVER, "{socket}", **kwargs)  # type: ignore[arg-type]


def workload(template: Template, workspace_id: str = "w1", owner: str = "alice", **environment: str) -> Workload:
    return Workload(workspace_id, owner, template, environment)
