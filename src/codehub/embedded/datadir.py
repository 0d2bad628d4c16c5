"""The data directory: what lies where, who may enter, and that only one instance uses it.

lock            held by the running supervisor
secrets/        generated passwords and the signing key; ours alone
postgres/ redis/  the servers' data; the service account's alone
run/            sockets, the ledger of children, metrics of this run
log/            ours (codehub.log) and the servers' own
backups/        what admins had made on a page; ours alone
account         whose the servers' data is (`ownership`)
"""

import fcntl
import hashlib
import os
import pathlib
import secrets
import stat
from dataclasses import dataclass

from codehub.errors import StartError
from codehub.settings import default_data_dir
from codehub.system.privileges import Account

# A Unix socket's path has at most 107 bytes; the longest name below `run` takes 22 of them.
LONGEST_RUN_DIR = 80
# What tells a data directory from other folders, and what may be in one that is not complete yet, or only prepared.
MARKS = {"secrets", "postgres"}
FIRST = {"lock", "run", "log", "redis", "archives", "backups", "ide", "codehub.toml", "templates", "lost+found"}


@dataclass(frozen=True)
class DataDir:
    root: pathlib.Path

    @property
    def secrets(self) -> pathlib.Path:
        return self.root / "secrets"

    @property
    def logs(self) -> pathlib.Path:
        return self.root / "log"

    @property
    def run(self) -> pathlib.Path:
        """Below the data directory, unless that makes sockets' paths too long."""
        inside = self.root / "run"
        if len(os.fsencode(inside)) <= LONGEST_RUN_DIR:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return pathlib.Path(f"/tmp/codehub-{os.geteuid()}-{digest}")  # noqa: S108 (its owner is checked in `prepare`)

    @property
    def postgres_socket_dir(self) -> pathlib.Path:
        return self.run / "pg"

    @property
    def redis_socket(self) -> pathlib.Path:
        return self.run / "redis" / "redis.sock"

    @property
    def api_socket(self) -> pathlib.Path:
        return self.run / "api" / "api.sock"

    @property
    def operator_socket(self) -> pathlib.Path:
        """Where the API listens for commands of the operator. Not beside the front door's: no other user has access."""
        return self.run / "operator" / "api.sock"

    @property
    def downloads_socket(self) -> pathlib.Path:
        """Where the coordinator gives homes to the API."""
        return self.api_socket.with_name("downloads.sock")

    @property
    def logs_socket(self) -> pathlib.Path:
        """Where the coordinator shows logs to the API, when only it may read them."""
        return self.api_socket.with_name("logs.sock")

    @property
    def backups(self) -> pathlib.Path:
        """With everything in them, keys too: only the coordinator's account may enter."""
        return self.root / "backups"

    @property
    def workspaces(self) -> pathlib.Path:
        """What the runtime keeps on this machine; `runtimes.layout` says how."""
        return self.root / "workspaces"

    @property
    def workspace_homes(self) -> pathlib.Path:
        return self.workspaces / "homes"

    @property
    def workspace_sockets(self) -> pathlib.Path:
        return self.run / "w"

    @property
    def database_url(self) -> str:
        return f"postgresql://codehub:{self.secret('postgres')}@/codehub?host={self.postgres_socket_dir}"

    @property
    def redis_url(self) -> str:
        return f"unix://default:{self.secret('redis')}@{self.redis_socket}"

    def secret(self, name: str) -> str:
        """A generated secret, made on first use. Whole or not at all: written aside, then renamed."""
        path = self.secrets / name
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            fresh = path.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            return path.read_text().strip()
        except PermissionError:
            raise StartError(f"{path} cannot be read: run this as the user that runs CodeHub") from None

    def note_url(self, url: str) -> None:
        """Where the running instance is reached, for commands that print links."""
        fresh = self.run / "url.new"
        fresh.write_text(url + "\n")
        fresh.replace(self.run / "url")

    def noted_url(self) -> str | None:
        try:
            return (self.run / "url").read_text().strip()
        except OSError:
            return None

    @property
    def log_file(self) -> pathlib.Path:
        return self.logs / "codehub.log"

    @property
    def is_new(self) -> bool:
        """Has no CodeHub been here before?"""
        return not self.secrets.exists()

    def check(self) -> None:
        """Refuse a path that can only be a mistake: a new directory would hide that the data is elsewhere."""
        root = self.root
        try:
            if root.exists() and not root.is_dir():
                raise StartError(f"CODEHUB_DATA_DIR={root}: is not a folder")
            if root.is_dir():
                names = {path.name for path in root.iterdir()}
                if not names & MARKS and names - FIRST:
                    raise StartError(
                        f"CODEHUB_DATA_DIR={root}: has other files in it and nothing of CodeHub's; "
                        "give CodeHub a folder of its own"
                    )
            elif not root.parent.is_dir() and root != default_data_dir(os.environ):
                raise StartError(
                    f"CODEHUB_DATA_DIR={root}: there is no folder {root.parent}; correct the path, or make that folder"
                )
        except OSError as e:
            raise StartError(f"cannot use the data directory {root}: {e.strerror}. {advice(e)}") from e

    def prepare(self, account: Account | None) -> None:
        """Make the folders, each with the narrowest owner and mode that works. Repeatable."""
        try:
            # Others may pass through a data directory of root's (workspaces live below), but not look around.
            self.root.chmod(0o711 if account else 0o700)
            _own_folder(self.run, None, 0o711 if account else 0o700)
            _own_folder(self.secrets, None, 0o700)
            _own_folder(self.logs, None, 0o700)
            _own_folder(self.operator_socket.parent, None, 0o700)
            for folder in ("pg", "redis", "api", "metrics"):
                _own_folder(self.run / folder, account, 0o700)
        except OSError as e:
            raise StartError(f"cannot use the data directory {self.root}: {e.strerror}. {advice(e)}") from e

    def lock(self) -> int:
        """Hold the directory for this process, made if need be; released by the kernel however we end."""
        self.check()
        path = self.root / "lock"
        try:
            self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise StartError(f"cannot use the data directory {self.root}: {e.strerror}. {advice(e)}") from e
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 32).decode().strip()
            os.close(fd)
            raise InUseError(
                f"another CodeHub (process {holder}) uses {self.root}: stop it, or set CODEHUB_DATA_DIR"
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        return fd


class InUseError(StartError):
    code = "DATA_DIR_IN_USE"


def advice(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "Give this user write permission, or set CODEHUB_DATA_DIR to a folder of its own."
    return "Set CODEHUB_DATA_DIR to a folder that can be written."


def _own_folder(path: pathlib.Path, account: Account | None, mode: int) -> None:
    """A real folder that belongs to us (or the account) and has this mode; one that another user made is refused."""
    path.mkdir(mode=0o700, exist_ok=True)
    info = path.lstat()
    # With an account it lies in a folder of ours, so that we gave it to its owner, who may be the account of before.
    if not stat.S_ISDIR(info.st_mode) or (account is None and info.st_uid != os.geteuid()):
        raise StartError(f"{path} belongs to another user: remove it, or set CODEHUB_DATA_DIR")
    if account:
        os.chown(path, account.uid, account.gid)
    path.chmod(mode)
