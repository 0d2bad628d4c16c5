"""Small real IDEs for tests: programs that listen on a Unix socket, or fail to in every way a real one does."""

import json
import pathlib

SERVER = """
import http.server, os, signal, socketserver, sys, time
sock, base = sys.argv[1], sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self): return "proxy"
    def do_GET(self):
        body = f"{os.getpid()} {self.path}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
STUBBORN = len(sys.argv) > 3
if STUBBORN: signal.signal(signal.SIGTERM, signal.SIG_IGN)
else: signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
server = Server(sock, Handler)
os.chmod(sock, 0o660)
print("listening", flush=True)
server.serve_forever()
"""
# The one who is started goes, and the one who answers is a child that nobody waits for.
DAEMON = "import os\nif os.fork(): os._exit(0)\nos.setsid()\n" + SERVER
# A grandchild in a session of its own, which belongs to nobody any more.
SPAWNER = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(86400)
    os._exit(0)
os.wait()
"""
# Writes what its quota does not allow, as far as it can, and goes on.
GREEDY = """
try: open("large", "wb").write(os.urandom(20_000_000))
except OSError as e: print("no more:", e.strerror, flush=True)
"""
# The first time it writes until there is no more room anywhere, and gives up.
HOARDER = """
import os
if not os.path.exists("been-here"):
    open("been-here", "w").close()
    with open("everything", "wb") as file:
        while True: file.write(bytes(65536)); file.flush()
"""
# Megabytes of log, while it serves.
TALKER = """
import sys, threading
def talk(megabytes):
    for _ in range(megabytes * 10): sys.stdout.write("x" * 104856 + chr(10))
    print("all is said", flush=True)
threading.Thread(target=talk, args=[int(sys.argv.pop())]).start()
"""
PROGRAMS = {
    "tiny": ["python3", "-c", SERVER, "{socket}", "{base_path}"],
    "stubborn": ["python3", "-c", SERVER, "{socket}", "{base_path}", "stubborn"],
    "exits": ["python3", "-c", "print('no module named numpy'); raise SystemExit(3)"],
    "hangs": ["python3", "-c", "import time; print('thinking', flush=True); time.sleep(3600)"],
    "late": ["python3", "-c", "import time; time.sleep(2)\n" + SERVER, "{socket}", "{base_path}"],
    "missing": ["no-such-ide-anywhere", "{socket}"],
    "daemon": ["python3", "-c", DAEMON, "{socket}", "{base_path}"],
    "spawner": ["python3", "-c", SPAWNER + SERVER, "{socket}", "{base_path}"],
    "greedy": ["python3", "-c", "import os\n" + GREEDY + SERVER, "{socket}", "{base_path}"],
    "hoarder": ["python3", "-c", HOARDER + SERVER, "{socket}", "{base_path}"],
    "chatty": ["python3", "-c", TALKER + SERVER, "{socket}", "{base_path}", "20"],
    "flooding": ["python3", "-c", TALKER + SERVER, "{socket}", "{base_path}", "400"],
}
LIMITS = {"greedy": "disk_mb = 8"}


def write_templates(folder: pathlib.Path) -> pathlib.Path:
    """A folder for `CODEHUB_TEMPLATES_DIR`, readable by everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for name, command in PROGRAMS.items():
        seconds = 4 if name == "hangs" else 60
        text = f'title = "{name}"\nstart_seconds = {seconds}\n[process]\ncommand = {json.dumps(command)}\n'
        text += f"[limits]\n{LIMITS.get(name, '')}\n"
        (folder / f"{name}.toml").write_text(text)
        (folder / f"{name}.toml").chmod(0o644)
    return folder
