"""From inside a workspace: what of the machine, the platform and the neighbours can be read, reached, seen or taken.

Every probe really runs inside. The same file runs as root and as an ordinary user (`test_ordinary_user`).
"""

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

import codehub
from codehub.embedded.datadir import DataDir
from codehub.runtimes import connect, records
from codehub.runtimes.base import IsolationUnavailableError
from codehub.runtimes.layout import Layout
from codehub.runtimes.network import ways
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import service_account
from codehub.templates.model import Network, ProcessSpec, Template
from tests.contracts.harness import KINDS, ended, home, processes_of, running
from tests.contracts.workloads import server, workload
from tests.runtimes.conftest import ON_THIS_MACHINE, Neighbours
from tests.servers import TestServers

pytestmark = pytest.mark.asyncio(loop_scope="module")
AS_ROOT = os.geteuid() == 0
PROCESSES_ONLY = pytest.mark.parametrize("neighbours", KINDS, indirect=True)
BY_A_SOCKET = pytest.mark.parametrize("neighbours", ON_THIS_MACHINE, indirect=True)
TRY_PATHS = """
import os, sys
for path in sys.argv[1:]:
    for name, attempt in (("list", os.listdir), ("read", lambda p: open(p).read())):
        try:
            found = attempt(path)
        except OSError:
            continue
        if found: print(name, path, found)
"""
TRY_SOCKETS = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
        except OSError:
            continue
        print("connected to", path)
"""
# Everything that can be seen at all, without what the kernel makes up and the system's own programs.
WALK = """
import os, stat
for folder, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/proc", "/usr", "/opt", "/nix")]
    for name in folders + files:
        path = os.path.join(folder, name)
        try:
            kind = "socket" if stat.S_ISSOCK(os.lstat(path).st_mode) else "file"
        except OSError:
            kind = "closed"
        print(kind, path)
"""


async def test_anothers_home_can_not_be_read(neighbours: Neighbours) -> None:
    bobs = await home(neighbours.runtime, "bobs")
    assert (bobs / "diary").exists()
    ways = [bobs, bobs / "diary", bobs.parent, "/home/bob", "/home/bob/diary", f"/proc/1/root{bobs}/diary"]
    assert await neighbours.alice_sees(TRY_PATHS, *map(str, ways)) == ""
    assert "diary" not in await neighbours.alice_sees(WALK)


@BY_A_SOCKET
async def test_anothers_socket_can_not_be_reached(neighbours: Neighbours) -> None:
    bobs = neighbours.bob.address.socket
    assert bobs
    assert await neighbours.alice_sees(TRY_SOCKETS, bobs, f"/proc/1/root{bobs}") == ""
    seen = (await neighbours.alice_sees(WALK)).splitlines()
    assert [line for line in seen if line.startswith("socket")] == ["socket /run/ide/sock"]


async def test_the_databases_and_redis_sockets_can_not_be_reached(neighbours: Neighbours, servers: TestServers) -> None:
    database = parse_qs(urlsplit(servers.database_url).query)["host"][0] + "/.s.PGSQL.5432"
    redis = urlsplit(servers.redis_url).path
    for path in (database, redis):
        assert pathlib.Path(path).is_socket()
    assert await neighbours.alice_sees(TRY_SOCKETS, database, redis) == ""


async def test_the_operators_socket_can_not_be_reached(neighbours: Neighbours) -> None:
    """Who gets there may do everything; an ordinary user's workspaces have the very account that it lets in."""
    path = DataDir(neighbours.data_dir).operator_socket
    path.parent.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        door.setblocking(False)
        roots = [
            f"/proc/{pid}/{place}" for pid in ("1", "self", os.getpid(), os.getppid()) for place in ("root", "cwd")
        ]
        tried = [str(path), *(f"{root}{path}" for root in roots), f"\0{path}", "run/operator/api.sock"]
        script = TRY_SOCKETS.replace("sys.argv[1:]", repr(tried))
        assert await neighbours.alice_sees(script) == ""
        with pytest.raises(BlockingIOError):
            door.accept()
        with socket.socket(socket.AF_UNIX) as ours:
            ours.connect(str(path))  # it is there


async def test_the_data_directory_can_not_be_seen(neighbours: Neighbours) -> None:
    data = neighbours.data_dir
    (data / "secrets").mkdir()
    (data / "secrets" / "signing-key").write_text("secret")
    ways = [data, data / "workspaces", data / "run", data / "secrets", data / "secrets" / "signing-key"]
    assert await neighbours.alice_sees(TRY_PATHS, *map(str, ways)) == ""


@PROCESSES_ONLY
async def test_a_data_directory_inside_a_tree_that_is_shown_is_hidden_in_it(neighbours: Neighbours) -> None:
    """The package's own folder is shown to every workspace; here it is asked for what lies where the data would be."""
    machine = (await neighbours.processes._host_context()).machine
    seen = (await neighbours.alice_sees(WALK)).split()
    assert all(tree in seen for tree in machine.trees if not tree.startswith("/usr"))
    assert not [path for path in seen if any(path.startswith(hidden + "/") for hidden in machine.hidden)]


async def test_the_answers_of_the_courses_that_come_with_the_package_can_not_be_read(neighbours: Neighbours) -> None:
    """The package itself is shown to every workspace."""
    shipped = pathlib.Path(codehub.__file__).parent / "courses" / "shipped"
    assert list(shipped.rglob("check.md"))
    ways = [path for one in shipped.rglob("*.md") for path in (one, one.resolve())]
    assert await neighbours.alice_sees(TRY_PATHS, *map(str, ways)) == ""
    assert "/courses/shipped/" not in await neighbours.alice_sees(WALK.replace(', "/opt"', ""))


async def test_nothing_of_the_platforms_environment_is_passed_on(neighbours: Neighbours) -> None:
    script = """
import glob, os
print(sorted(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try: print(open(path).read())
    except OSError: pass
"""
    seen = await neighbours.alice_sees(script)
    assert "the-platforms-own-secret" not in seen
    names = {"CODEHUB_WORKSPACE_ID", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
    if isinstance(neighbours.runtime, ProcessRuntime):
        names |= set(ways.environment((await neighbours.processes.way_out()).kind))
    assert seen.splitlines()[0] == str(sorted({*names, "LC_CTYPE"} if "LC_CTYPE" in seen else names))


async def test_processes_of_others_can_not_be_seen_or_signalled(neighbours: Neighbours) -> None:
    bobs = processes_of(neighbours.marker)
    assert bobs
    script = """
import os, sys
numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(len(numbers), max(numbers))
for pid in map(int, sys.argv[1:]):
    for signal in (0, 9):
        try: os.kill(pid, signal)
        except ProcessLookupError: continue
        print("reached", pid)
"""
    seen = await neighbours.alice_sees(script, *map(str, [*bobs, os.getpid(), os.getppid()]))
    assert len(seen.splitlines()) == 1
    assert int(seen.split()[0]) < 6
    assert processes_of(neighbours.marker) == bobs


async def test_the_platforms_port_can_not_be_taken_not_even_while_it_is_down(neighbours: Neighbours) -> None:
    """Whoever had it would be the platform to everybody's browser, and keep it from coming back."""
    script = """
import socket, sys, time
taken = []
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")):
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        s = socket.socket(family)
        s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind((host, int(sys.argv[1])))
            s.listen()
        except OSError:
            continue
        taken.append(s)
print("took", len(taken), flush=True)
time.sleep(float(sys.argv[2]))
"""
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
    taking = asyncio.create_task(neighbours.alice_runs(script, str(port), "3"))
    for _ in range(40):
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as visitor, pytest.raises(ConnectionRefusedError):
                visitor.connect((host, port))
        await asyncio.sleep(0.05)
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        socket.create_server((host, port), family=family).close()
    assert b"took" in (await taking).output
    assert b"took 0" not in (await taking).output


@contextlib.contextmanager
def listening_on_this_machine() -> Iterator[tuple[int, str]]:
    """A port on both loopbacks, for streams and datagrams, and an abstract socket."""
    name = f"codehub-test-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        four = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = four.getsockname()[1]
        stack.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6))
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", port))
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0{name}")
        hidden.listen()
        yield port, name


async def test_what_listens_on_the_machine_can_not_be_reached_or_seen(neighbours: Neighbours) -> None:
    script = """
import glob, socket, sys
port, name = int(sys.argv[1]), sys.argv[2]
for family, where in (
    (socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port)), (socket.AF_UNIX, "\\0" + name),
):
    with socket.socket(family) as s:
        s.settimeout(2)
        try: s.connect(where)
        except OSError: continue
        print("reached", where)
for path in glob.glob("/proc/net/*") + glob.glob("/proc/*/net/*"):
    try: text = open(path).read()
    except OSError: continue
    if name in text or f":{port:04X} " in text: print("seen in", path)
"""
    with listening_on_this_machine() as (port, name):
        assert await neighbours.alice_sees(script, str(port), name) == ""
        seen = await neighbours.alice_sees("print(open('/proc/net/unix').read())")
        assert str(neighbours.data_dir) not in seen


async def test_what_listens_in_another_workspace_can_not_be_reached(neighbours: Neighbours) -> None:
    """A kernel's or a debugger's port: whoever reaches it reads its traffic, or runs code as its owner."""
    listen = """
import socket, sys, threading, time
streams, datagrams = socket.create_server(("127.0.0.1", 5678)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 5678))
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\\0bobs-kernel")
hidden.listen()
print("listening", flush=True)
time.sleep(4)
"""
    reach = """
import socket, time
for _ in range(20):
    for family, where in ((socket.AF_INET, ("127.0.0.1", 5678)), (socket.AF_UNIX, "\\0bobs-kernel")):
        with socket.socket(family) as s:
            try: s.connect(where)
            except OSError: continue
            print("reached", where)
    time.sleep(0.1)
"""
    bobs = asyncio.create_task(neighbours.runtime.exec("bobs", ["python3", "-c", listen]))
    assert await neighbours.alice_sees(reach) == ""
    assert (await bobs).output == b"listening\n"


async def test_a_user_has_a_name_a_home_and_nobody_elses_entry(neighbours: Neighbours) -> None:
    script = """
import getpass, os, pwd, socket
print(pwd.getpwuid(os.getuid()).pw_name, os.getcwd(), os.path.expanduser("~"), socket.gethostname())
print(*sorted(entry.pw_name for entry in pwd.getpwall()))
"""
    assert (await neighbours.alice_sees(script)).splitlines() == [
        "alice /home/alice /home/alice alices",
        "alice nobody root",
    ]
    assert (await neighbours.runtime.exec("alices", ["whoami"])).output == b"alice\n"


async def test_our_commands_are_found_in_a_login_shell_too(neighbours: Neighbours) -> None:
    """As IDEs' terminals start one: the system's profile sets a PATH of its own, which keeps its order."""
    for shell in ("bash", "sh"):
        found = await neighbours.runtime.exec("alices", [shell, "-lc", "codehub --version && echo $PATH"])
        version, path = found.output.decode().splitlines()
        assert version.startswith("codehub ")
        usual = (await neighbours.runtime.exec("alices", ["sh", "-c", "echo $PATH"])).output.decode().strip()
        assert set(path.split(":")) >= set(usual.split(":")) - {"/home/alice/.local/bin"}
        assert len(path.split(":")) == len(set(path.split(":")))


async def test_there_are_no_rights_to_gain(neighbours: Neighbours) -> None:
    seen = await neighbours.alice_sees("print(open('/proc/self/status').read())")
    status = dict(line.split(":\t", 1) for line in seen.splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16
    )
    script = """
import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    if b"serve_foreve" + b"r" in open(path, "rb").read():
        print(open(path.replace("cmdline", "status")).read())
"""
    ide = await neighbours.alice_sees(script)
    assert "NoNewPrivs:\t1" in ide
    assert "CapBnd:\t" + "0" * 16 in ide


async def test_a_setuid_program_gives_nothing(neighbours: Neighbours) -> None:
    planted = await home(neighbours.runtime, "alices") / "planted"
    shutil.copy("/usr/bin/id", planted)
    if AS_ROOT:
        os.chown(planted, 0, 0)
    planted.chmod(0o6755)
    own = (await neighbours.runtime.exec("alices", ["id", "-u"])).output
    assert own != b"0\n"
    assert (await neighbours.runtime.exec("alices", ["./planted", "-u"])).output == own
    if not isinstance(neighbours.runtime, ProcessRuntime):
        return  # an engine's mounts are not `nosuid`: there it is `no-new-privileges` alone
    mounts = await neighbours.alice_sees("print(open('/proc/self/mounts').read())")
    assert [line for line in mounts.splitlines() if line and "nosuid" not in line] == []


async def test_the_system_can_not_be_changed(neighbours: Neighbours) -> None:
    script = """
import os
system = ("/", "/etc", "/usr", "/usr/bin", "/home", "/run", "/var", "/proc/sys/kernel")
for path in (*system, *os.environ["PATH"].split(":")[1:]):
    if os.path.isdir(path):
        try: open(path + "/planted", "w")
        except OSError: continue
        print("wrote", path)
for path in ("/etc/passwd", "/etc/hosts", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    try: open(path, "a").write("x")
    except OSError: continue
    print("changed", path)
"""
    assert await neighbours.alice_sees(script) == ""
    for command in (["mount", "-t", "tmpfs", "none", "/tmp"], ["hostname", "evil"], ["mknod", "disk", "b", "8", "0"]):
        assert (await neighbours.runtime.exec("alices", command)).exit_code != 0


async def test_temporary_files_are_ones_own(neighbours: Neighbours) -> None:
    with tempfile.NamedTemporaryFile(prefix="of-the-machine-", dir="/tmp") as machines:
        script = (
            "import os; [open(f + '/alices', 'w') for f in ('/tmp', '/dev/shm', '/var/tmp')]; print(os.listdir('/tmp'))"
        )
        assert pathlib.Path(machines.name).name not in await neighbours.alice_sees(script)
    theirs = await neighbours.runtime.exec("bobs", ["ls", "/tmp", "/dev/shm", "/var/tmp/"])
    assert b"alices" not in theirs.output
    assert not pathlib.Path("/tmp/alices").exists()
    assert not pathlib.Path("/dev/shm/alices").exists()


async def test_terminals_work_and_are_ones_own(neighbours: Neighbours) -> None:
    script = "import os, pty; master, slave = pty.openpty(); print(os.ttyname(slave), sorted(os.listdir('/dev/pts')))"
    assert await neighbours.alice_sees(script) == "/dev/pts/0 ['0', 'ptmx']\n"


@PROCESSES_ONLY
async def test_one_workspace_can_not_take_everybodys_terminals(neighbours: Neighbours) -> None:
    script = """
import os
pairs = []
try:
    while len(pairs) < 1000: pairs.append(os.openpty())
except OSError: pass
print(len(pairs))
"""
    made = int(await neighbours.alice_sees(script))
    record = records.read(Layout(neighbours.data_dir).of("alices"))
    assert record
    # Bubblewrap makes its terminals itself and cannot be told how many: one reason why it is only the second choice.
    assert made < 300 or record.isolation == "bubblewrap"


async def test_a_link_in_the_sockets_place_is_not_followed(short_lived: Neighbours) -> None:
    """Whoever connects for alice must not be led to bob's IDE, which only they can reach."""
    assert short_lived.bob.address.socket
    await short_lived.runtime.exec(
        "alices", ["sh", "-c", 'rm /run/ide/sock && ln -s "$0" /run/ide/sock', short_lived.bob.address.socket]
    )
    assert short_lived.alice.address.socket
    assert pathlib.Path(short_lived.alice.address.socket).is_socket()  # so a careless proxy would get through
    with pytest.raises(OSError, match=r"not a socket|symbolic"):
        await connect.opened(short_lived.alice.address)


@BY_A_SOCKET
async def test_only_the_proxys_account_gets_to_a_socket(neighbours: Neighbours) -> None:
    """From outside any sandbox: the service account may connect, another workspace's user and a stranger may not."""
    path = neighbours.bob.address.socket
    assert path
    assert pathlib.Path(path).parent.stat().st_mode & 0o7007 == (0o2000 if AS_ROOT else 0)
    if not AS_ROOT:
        assert pathlib.Path(path).parent.stat().st_uid == os.geteuid()
        return
    proxy, alice = service_account(None), (await home(neighbours.runtime, "alices")).stat().st_uid
    assert proxy
    script = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
    outcomes = {}
    for name, uid, gid in (("proxy", proxy.uid, proxy.gid), ("alice", alice, alice), ("stranger", 54321, 54321)):
        rights = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        done = subprocess.run([*rights, "/usr/bin/python3", "-c", script], capture_output=True, check=False)
        outcomes[name] = done.returncode
    assert outcomes == {"proxy": 0, "alice": 1, "stranger": 1}


@PROCESSES_ONLY
async def test_what_a_template_shows_is_seen_and_not_writable(neighbours: Neighbours) -> None:
    """An interpreter or a course's material may lie below a directory that only its owner can enter."""
    with tempfile.TemporaryDirectory() as closed:  # 0700, ours
        material = pathlib.Path(closed) / "material"
        material.mkdir()
        (material / "lesson").write_text("one\n")
        (material / "lesson").chmod(0o644)
        material.chmod(0o755)
        (pathlib.Path(closed) / "answers").write_text("42")
        command = server().process
        assert command
        template = Template("shown", "Shown", process=ProcessSpec(command.command, paths=(str(material),)))
        await running(neighbours.runtime, workload(template, "carols", "carol"))
        shown = await neighbours.runtime.exec(
            "carols", ["sh", "-c", f"cat {material}/lesson; ls {closed}; > {material}/x"]
        )
        assert shown.output.split()[:2] == [b"one", b"material"]
        assert shown.exit_code != 0
        assert [path.name for path in material.iterdir()] == ["lesson"]


@PROCESSES_ONLY
async def test_the_machines_own_network_is_for_admins_unless_an_operator_says_so_twice(neighbours: Neighbours) -> None:
    command = server().process
    assert command
    template = Template("open", "Open", process=ProcessSpec(command.command, network=Network.HOST))
    runtime = neighbours.runtime
    with pytest.raises(IsolationUnavailableError, match="CODEHUB_NETWORK_HOST_FOR=everybody"):
        await runtime.start(workload(template, "daves", "dave"))
    await running(runtime, dataclasses.replace(workload(template, "admins", "root"), trusted=True))
    script = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1)"
    with listening_on_this_machine() as (port, _):
        assert (await runtime.exec("admins", ["python3", "-c", script, str(port)])).exit_code == 0


async def test_an_ended_shepherd_takes_its_workspace_with_it(short_lived: Neighbours) -> None:
    """Nobody runs on without a log, a lock and somebody to end it."""
    record = records.read(Layout(short_lived.data_dir).of("bobs"))
    assert record
    os.kill(record.shepherd.pid, signal.SIGKILL)
    await ended(short_lived.runtime, "bobs")
    assert processes_of(short_lived.marker) == []
    last = await short_lived.runtime.last_exit("bobs")
    assert last
    assert last.code is None
