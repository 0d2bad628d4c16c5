"""What a workspace sees, as data: the mounts of its sandbox and the command line of bubblewrap. Pure.

`process` asks for it at each start, `isolation` for its probe. It is a list of what is let in, not of what is kept out:
the system's programs, a few files of /etc, the interpreter, the home, the directory of its socket. What one of
those trees happens to contain and is nobody's business inside is hidden in turn.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from codehub.runtimes.shepherd.spec import Mount, NetworkSpec

SOCKET_DIR = "/run/ide"
DOOR_DIR = "/run/codehub"  # where a workspace reaches the platform
# Of /etc: what programs expect, and nothing that an operator may have put a password into.
ETC = """
    alternatives bash.bashrc bashrc bash_completion bash_completion.d ca-certificates ca-certificates.conf
    crypto-policies debian_version default/locale fonts gai.conf gitconfig host.conf inputrc issue
    java-11-openjdk java-17-openjdk java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias
    locale.conf localtime login.defs lsb-release magic magic.mime mailcap mime.types nanorc networks
    nsswitch.conf os-release papersize perl pki profile profile.d protocols python3 R redhat-release
    resolv.conf rpc screenrc services shells skel ssl system-release terminfo texmf timezone vim wgetrc xdg
    zsh zshrc
""".split()  # noqa: SIM905 (eighty quoted names, one a line, read worse)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix")
LEAST_TMP = 64 << 20
VENV_FILE = "pyvenv.cfg"
SYSTEM_SITE = re.compile(r"(?im)^(\s*include-system-site-packages\s*=\s*)false\s*$")


@dataclass(frozen=True)
class Machine:
    """What there is to be shown; read once from the machine by `isolation.look`."""

    system: tuple[tuple[str, str | None], ...]  # directories of SYSTEM that exist; with a target, they are links
    etc: tuple[str, ...]  # names of ETC that exist
    trees: tuple[str, ...]  # the interpreter, its environment, this package
    hidden: tuple[str, ...]  # the data directory and its like, and the answers of courses
    venv: str = ""  # what `pyvenv.cfg` of the interpreter's environment says inside; empty: there is none, or no need
    venv_files: tuple[str, ...] = ()  # where that file lies: as it is called, and as it really is


@dataclass(frozen=True)
class SandboxSpec:
    """What is one workspace's own."""

    workspace_id: str
    user: str
    uid: int | None  # None: the platform's own
    home: str  # on the machine
    socket_dir: str  # on the machine
    etc: str  # on the machine: passwd, group, hosts, hostname, profile
    network: NetworkSpec = NetworkSpec()
    resolv_conf: str | None = None  # None: as on the machine
    tmp_bytes: int = 0  # of /tmp and /dev/shm each; 0: no limit
    door_dir: str = ""  # on the machine; empty: there is none
    paths: tuple[str, ...] = field(default_factory=tuple)  # more trees to show: an IDE's own, a template's

    @property
    def inside_home(self) -> str:
        return f"/home/{self.user}"


def mounts(machine: Machine, box: SandboxSpec) -> list[Mount]:
    """In the order in which they are made: later ones lie on top."""
    tmp = max(LEAST_TMP, box.tmp_bytes) if box.tmp_bytes else 0
    shown = [path for path, target in machine.system if target is None]
    steps = [
        Mount("symlink", path, target) if target else Mount("read-only", path, path) for path, target in machine.system
    ]
    ours = ["passwd", "group", "hosts", "hostname", "profile", *([] if box.resolv_conf is None else ["resolv.conf"])]
    steps += [Mount("read-only", f"/etc/{name}", f"/etc/{name}") for name in machine.etc if name not in ours]
    steps += [Mount("read-only", f"/etc/{name}", f"{box.etc}/{name}") for name in ours]
    steps += [
        Mount("proc", "/proc"),
        Mount("dev", "/dev"),
        Mount("tmpfs", "/dev/shm", size=tmp),  # noqa: S108 (inside the sandbox)
        Mount("tmpfs", "/tmp", size=tmp),  # noqa: S108
        Mount("folder", "/var"),
        Mount("symlink", "/var/tmp", "/tmp"),  # noqa: S108
        Mount("folder", "/run"),
    ]
    trees = [tree for tree in machine.trees if not _inside(tree, shown)]
    steps += [Mount("read-only", tree, tree) for tree in trees]
    steps += [Mount("read-only", path, f"{box.etc}/{VENV_FILE}") for path in machine.venv_files]
    steps += [Mount("hide", path) for path in machine.hidden if _inside(path, [*shown, *trees])]
    steps += [Mount("read-only", path, path) for path in box.paths if not _inside(path, [*shown, *trees])]
    steps += [Mount("read-only", DOOR_DIR, box.door_dir)] if box.door_dir else []
    steps += [Mount("bind", SOCKET_DIR, box.socket_dir), Mount("bind", box.inside_home, box.home)]
    return list(dict.fromkeys(step for given in steps for step in [*_way_to(given), given]))


def _way_to(step: Mount) -> list[Mount]:
    """The folders above a private one, named so that they can be passed through; bubblewrap would close them, too."""
    if step.kind not in {"bind", "read-only"}:
        return []
    parts = step.target.split("/")
    return [Mount("folder", "/".join(parts[: end + 1])) for end in range(1, len(parts) - 1)]


def _inside(path: str, trees: list[str]) -> bool:
    return any(path == tree or path.startswith(tree.rstrip("/") + "/") for tree in trees)


def bubblewrap(program: str, steps: list[Mount], box: SandboxSpec) -> list[str]:
    """Program and options; descriptors and the command follow.

    As root it begins inside the workspace's network, with its loopback up: setting that up itself fails now and then.
    """
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if box.uid is None:
        options += ["--unshare-user", *(["--unshare-net"] if box.network.private_network else [])]
    for step in steps:
        options += _option(step)
    options += [
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--hostname",
        box.workspace_id,
        "--chdir",
        box.inside_home,
    ]
    return [program, *options, "--new-session", "--die-with-parent"]


def _option(step: Mount) -> list[str]:
    if step.kind in {"read-only", "bind", "symlink"}:
        return ["--ro-bind" if step.kind == "read-only" else f"--{step.kind}", step.source, step.target]
    if step.kind == "tmpfs":
        return ["--perms", "1777", *(["--size", str(step.size)] if step.size else []), "--tmpfs", step.target]
    if step.kind == "hide":
        return ["--perms", "0555", "--size", "4096", "--tmpfs", step.target, "--remount-ro", step.target]
    return ["--dir" if step.kind == "folder" else f"--{step.kind}", step.target]


def drop_rights(setpriv: str, uid: int | None) -> list[str]:
    """Put before the command when bubblewrap runs as root; as an ordinary user it has dropped everything itself."""
    if uid is None:
        return []
    who = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    return [setpriv, *who, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]


# A login shell, as IDEs' terminals are, begins with the system's PATH instead of the workspace's.
PROFILE = """
# Added by CodeHub, so that its commands are found in every terminal.
for folder in {folders}; do
    case ":$PATH:" in *":$folder:"*) ;; *) PATH="$PATH:$folder" ;; esac
done
export PATH
unset folder
"""


def with_user_site(venv: str) -> str:
    """This `pyvenv.cfg` for an environment that cannot be written to: then pip installs into the home, and Python looks
    there. Empty where it says so already.
    """
    changed, count = SYSTEM_SITE.subn(r"\1true", venv)
    return changed if count else ""


def etc_files(
    machine: Machine,
    box: SandboxSpec,
    hosts: str,
    uid: int,
    gid: int,
    *,
    profile: str = "",
    folders: Sequence[str] = (),
) -> dict[str, str]:
    """`whoami` and `hostname` work, and tell nothing about the machine's other users; commands of `folders` are found.

    `hosts` and `profile` are the machine's own files.
    """
    return {
        "profile": profile + PROFILE.format(folders=" ".join(map(shlex.quote, folders))),
        "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{box.user}:x:{uid}:{gid}::{box.inside_home}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\n{box.user}:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": f"{hosts.rstrip()}\n127.0.1.1 {box.workspace_id}\n",
        "hostname": f"{box.workspace_id}\n",
        **({} if box.resolv_conf is None else {"resolv.conf": box.resolv_conf}),
        **({VENV_FILE: machine.venv} if machine.venv else {}),
    }


def user_name(owner: str) -> str:
    """A person's own name where it can be one of a Unix user, and is not one that means something already."""
    fits = owner[:1].isalpha() and len(owner) <= 32 and all(c.isascii() and (c.isalnum() or c in "-_") for c in owner)
    return owner if fits and owner.islower() and owner not in {"root", "nobody", "nogroup"} else "learner"
