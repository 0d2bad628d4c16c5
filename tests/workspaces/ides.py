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
PROGRAMS = {
    "tiny": ["python3", "-c", SERVER, "{socket}", "{base_path}"],
    "stubborn": ["python3", "-c", SERVER, "{socket}", "{base_path}", "stubborn"],
    "exits": ["python3", "-c", "print('no module named numpy'); raise SystemExit(3)"],
    "hangs": ["python3", "-c", "import time; print('thinking', flush=True); time.sleep(3600)"],
    "missing": ["no-such-ide-anywhere", "{socket}"],
    "chatty": [
        "python3",
        "-c",
        "import sys\nfor _ in range(2000): sys.stdout.write('x' * 99999 + chr(10))\n" + SERVER,
        "{socket}",
        "x",
    ],
}


def write_templates(folder: pathlib.Path) -> pathlib.Path:
    """A folder for `CODEHUB_TEMPLATES_DIR`, readable by everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for name, command in PROGRAMS.items():
        seconds = 4 if name == "hangs" else 60
        text = f'title = "{name}"\nstart_seconds = {seconds}\n[process]\ncommand = {json.dumps(command)}\n'
        (folder / f"{name}.toml").write_text(text)
        (folder / f"{name}.toml").chmod(0o644)
    return folder
