"""A workspace's network of its own: made before its IDE begins, tended by its shepherd while it runs.

The namespace is the sandbox's; here it gets its way out. Until it has one there is only its loopback, and where the
way is an interface, the firewall is loaded before that interface exists. `ways` runs this module by itself as a probe.
"""

# Plain names and descriptors instead of paths: most of this runs between a fork and an exec.
# ruff: noqa: PTH116, PTH119, PTH123

import contextlib
import errno
import ipaddress
import json
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from codehub.runtimes import launch as helpers
from codehub.runtimes.network import firewall
from codehub.runtimes.shepherd import own_addresses
from codehub.runtimes.shepherd.spec import PASTA, RELAY, RELAY_PORT, SLIRP4NETNS, USER_MODE_RESOLVER, VETH, NetworkSpec
from codehub.system import kernel

READY_SECONDS, PAUSE_SECONDS = 10.0, 0.001
BACKLOG = 128
TRIES = 64
POOL = ipaddress.ip_network(firewall.POOL)
JoinGroups = Callable[[], None]


@dataclass(frozen=True)
class Inside:
    """Whose network it is: the first process inside, and its user (None: our own)."""

    first: int
    uid: int | None = None
    gid: int | None = None
    has_loopback: bool = False  # or gets it without us


class Network:
    """What is kept open for it. `watched` has descriptors and what to do when they are readable."""

    def __init__(self, spec: NetworkSpec, inside: Inside, join: JoinGroups) -> None:
        self._spec = spec
        self._inside = inside
        self._first = inside.first
        self._join_groups = join
        self._kept: list[int] = []
        self._listener: int | None = None
        self._egress: int | None = None
        self._changes: socket.socket | None = None
        self._own = set(spec.own)

    def open(self) -> None:
        """Raises OSError with what went wrong."""
        if self._spec.kind in {RELAY, SLIRP4NETNS, PASTA, VETH}:
            listener = _listen_inside(self._inside)  # also where it is not needed: then there is a loopback
            if self._spec.kind == RELAY:
                self._listener = listener
                return
            os.close(listener)
            self._changes = own_addresses.changes()
            nft = [self._spec.programs["nft"], "-f", "-"]
            outside = _begin(nft, self._spec.firewall_outside) if self._spec.firewall_outside else None
            self._run_inside(nft, self._spec.firewall)
            if outside:
                outside.finish()
            self.look_at_addresses()
            {SLIRP4NETNS: self._slirp, PASTA: self._pasta, VETH: self._veth}[self._spec.kind]()

    def watched(self) -> dict[int, Callable[[], None]]:
        found: dict[int, Callable[[], None]] = {}
        if self._listener is not None and self._egress is None:
            found[self._listener] = self.start_egress
        if self._changes is not None:
            found[self._changes.fileno()] = self.look_at_addresses
        return found

    def start_egress(self) -> None:
        """Somebody wants out; from here on connections are the proxy's to accept, until it ends."""
        assert self._listener is not None  # noqa: S101 (it is what was readable)
        rules = {"allow": self._spec.allow, "private": self._spec.private}
        told = {**rules, "uid": self._inside.uid, "gid": self._inside.gid}
        command = helpers.helper("egress", str(self._listener), json.dumps(told))
        self._egress = _spawn(command, keep=(self._listener,), before=self._join_groups)

    def ended(self, pids: Sequence[int]) -> None:
        if self._egress in pids:
            self._egress = None

    def look_at_addresses(self) -> None:
        """This machine got another address: that one is not to be reached either."""
        assert self._changes is not None  # noqa: S101 (it is what was readable)
        with contextlib.suppress(BlockingIOError):
            while self._changes.recv(65536):
                pass
        fresh = [address for address in own_addresses.read() if address not in self._own]
        if fresh:
            self._run_inside([self._spec.programs["nft"], "-f", "-"], firewall.more_own(fresh))
            self._own.update(fresh)

    def _slirp(self) -> None:
        network = os.open(f"/proc/{self._first}/ns/net", os.O_RDONLY)
        owner = kernel.owning_user_namespace(network)
        ready, tell = os.pipe()
        end, hold = os.pipe()
        command = [
            *(self._spec.programs["slirp4netns"], "--configure", "--mtu=65520", "--disable-host-loopback"),
            *(f"--ready-fd={tell}", f"--exit-fd={end}", "--netns-type=path"),
            # Its sandbox does not go together with a user namespace that is given by its path (its issue 317).
            "--enable-sandbox" if _is_our_user_namespace(owner) else f"--userns-path=/proc/self/fd/{owner}",
            *(f"/proc/self/fd/{network}", "tap0"),
        ]
        said = os.memfd_create("said")
        _spawn(command, output=said, keep=(network, owner, tell, end), before=self._join_groups)
        for fd in (network, owner, tell, end):
            os.close(fd)
        self._kept.append(hold)  # its end is closed with us, and so is slirp4netns
        begun = select.select([ready], [], [], READY_SECONDS)[0] and os.read(ready, 1)
        words = os.pread(said, 2000, 0).decode(errors="replace").split("\n")
        os.close(ready)
        os.close(said)
        if not begun:
            raise OSError(f"slirp4netns did not begin: {' '.join(words)}")

    def _pasta(self) -> None:
        """It does not say when it has begun: when there is a route, it has."""
        network = os.open(f"/proc/{self._first}/ns/net", os.O_RDONLY)
        owner = kernel.owning_user_namespace(network)
        none = ("-t", "none", "-u", "none", "-T", "none", "-U", "none")  # no port of either side is the other's
        command = [
            *(self._spec.programs["pasta"], "--foreground", "--quiet", "--config-net", "--ipv4-only", "--no-map-gw"),
            *("--no-dhcp", "--no-ra", "--no-ndp", *none, "--dns-forward", USER_MODE_RESOLVER),
            *("--userns", f"/proc/self/fd/{owner}", "--netns", f"/proc/self/fd/{network}"),
        ]
        pid = _spawn(command, keep=(network, owner), before=self._join_groups)
        os.close(network)
        os.close(owner)
        deadline = kernel.now_seconds() + READY_SECONDS
        while not _has_route(self._first):
            if os.waitpid(pid, os.WNOHANG)[0] or kernel.now_seconds() > deadline:
                raise OSError("pasta did not begin")
            time.sleep(PAUSE_SECONDS)

    def _veth(self) -> None:
        ip = self._spec.programs["ip"]
        numbers = random.sample(range(1, POOL.num_addresses // 2), TRIES)
        for number in numbers:  # the kernel's names are the list of those that are taken
            name, ours, theirs = f"{firewall.VETH}{number}", POOL[2 * number], POOL[2 * number + 1]
            try:
                _begin(
                    [ip, "-batch", "-"],
                    f"link add {name} type veth peer name eth0 netns {self._first}\n"
                    f"address add {ours}/31 dev {name}\nlink set {name} up\n",
                ).finish()
            except FileExistsError:
                continue
            self._run_inside(
                [ip, "-batch", "-"],
                f"address add {theirs}/31 dev eth0\nlink set eth0 up\nroute add default via {ours}\n",
            )
            return
        raise OSError("no address is left for another workspace's network")

    def _run_inside(self, command: Sequence[str], text: str) -> None:
        def enter() -> None:
            kernel.enter_network(self._first)
            kernel.pass_on_network_rights()

        _begin(command, text, before=enter).finish()


def _has_route(pid: int) -> bool:
    """Is there a way to everywhere, in this process's network?"""
    with open(f"/proc/{pid}/net/route", encoding="ascii") as table:
        return any(line.split()[1] == "00000000" for line in table.readlines()[1:])


def _is_our_user_namespace(fd: int) -> bool:
    return os.fstat(fd).st_ino == os.stat("/proc/self/ns/user").st_ino


def _listen_inside(inside: Inside) -> int:
    """A listening socket of that network, in our hands.

    An ordinary user's bubblewrap sets up the loopback itself and fails when it finds that done: it is waited for.
    """
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            here.close()
            kernel.enter_network(inside.first)
            if not inside.has_loopback:
                kernel.loopback_up()
            listener = _bound()
            listener.listen(BACKLOG)
            there.send(f"1{listener.fileno()}".encode())
            there.recv(1)  # until it has been taken
        except OSError as e:
            there.send(f"0{e.strerror or e}".encode())
        os._exit(0)
    there.close()
    try:
        said = here.recv(1000).decode(errors="replace")
        if not said.startswith("1"):
            raise OSError(f"the workspace's network cannot be entered: {said[1:]}")
        # Not sent as a message: how many descriptors may be on their way is counted by user, for all its workspaces.
        return kernel.take_descriptor(pid, int(said[1:]))
    finally:
        here.close()
        os.waitpid(pid, 0)


def _bound() -> socket.socket:
    listener = socket.socket()
    deadline = kernel.now_seconds() + READY_SECONDS
    while True:
        try:
            listener.bind(("127.0.0.1", RELAY_PORT))
        except OSError as e:
            if e.errno != errno.EADDRNOTAVAIL or kernel.now_seconds() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return listener


@dataclass(frozen=True)
class Begun:
    """A program that is under way."""

    program: str
    pid: int
    said: int

    def finish(self) -> None:
        """Wait for its end; raises OSError with what it said."""
        _, status = os.waitpid(self.pid, 0)
        words = os.pread(self.said, 2000, 0).decode(errors="replace").strip()
        os.close(self.said)
        if status == 0:
            return
        if "File exists" in words:
            raise FileExistsError(words)
        raise OSError(f"{os.path.basename(self.program)}: {words.splitlines()[0] if words else f'status {status}'}")


def _begin(command: Sequence[str], text: str, before: Callable[[], None] = lambda: None) -> Begun:
    given, said = os.memfd_create("given"), os.memfd_create("said")
    os.write(given, text.encode())
    os.lseek(given, 0, os.SEEK_SET)
    pid = _spawn(command, stdin=given, output=said, before=before)
    os.close(given)
    return Begun(command[0], pid, said)


def _spawn(
    command: Sequence[str],
    *,
    stdin: int | None = None,
    output: int | None = None,
    keep: Sequence[int] = (),
    before: Callable[[], None] = lambda: None,
) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _become(command, stdin, output, keep, before)
        except OSError as e:
            os.write(2, f"{e.strerror or e}\n".encode())
        os._exit(126)
    return pid


def _become(
    command: Sequence[str], stdin: int | None, output: int | None, keep: Sequence[int], before: Callable[[], None]
) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, place in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(nothing if fd is None else fd, place)
    kept = sorted({0, 1, 2, *keep})
    before()
    for low, high in zip(kept, [*kept[1:], 4096], strict=True):
        os.closerange(low + 1, high)
    for fd in keep:
        os.set_inheritable(fd, True)
    os.execve(command[0], list(command), {"PATH": os.defpath + ":/usr/sbin:/sbin"})  # noqa: S606


def main(_arguments: list[str]) -> None:
    """The probe: make a network of one's own with this way out, and say what is wrong with it."""
    spec = NetworkSpec(**json.loads(sys.stdin.buffer.read()))
    made, tell = os.pipe()
    first = os.fork()
    if first == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        _be_a_network(tell)
    os.close(tell)
    said = os.read(made, 1000)
    try:
        if said != b"1":
            raise OSError(said.decode(errors="replace") or "no network namespace")  # noqa: TRY301
        network = Network(spec, Inside(first), lambda: None)
        network.open()
    except OSError as e:
        sys.exit(str(e.strerror or e))
    finally:
        os.kill(first, signal.SIGKILL)


def _be_a_network(tell: int) -> NoReturn:
    try:
        uid, gid = os.getuid(), os.getgid()
        if uid:
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET)
            kernel.map_user(0, 0, uid, gid)
        else:
            kernel.unshare(kernel.CLONE_NEWNET)
        os.write(tell, b"1")
    except OSError as e:
        os.write(tell, (e.strerror or str(e)).encode())
        os._exit(1)
    while True:
        signal.pause()
