"""`run_workers` as a process of its own. `workers` starts many: it loads what `codehub proxy` does, and no more."""

import os
import socket
import sys

from codehub import logs
from codehub import settings as config
from codehub.clock import SystemClock
from codehub.proxy import workers
from codehub.proxy.model import Address


def main() -> None:
    fd, upstream, count, drain_seconds = sys.argv[1:]
    env = {"CODEHUB_DATA_DIR": os.path.dirname(upstream), "CODEHUB_DRAIN_SECONDS": drain_seconds}  # noqa: PTH120
    settings = config.load({**env, "CODEHUB_LOG_LEVEL": "error"})
    logs.configure(settings.log, "proxy")
    listener = socket.socket(fileno=int(fd))
    listener.setblocking(False)
    workers.run_workers(settings, SystemClock(), [listener], Address(path=upstream), workers=int(count))


if __name__ == "__main__":
    main()
