"""What the commands of all capabilities share: who runs them, the way to the API (`client`), their `output`."""

import os
import pwd

from codehub.policy import model
from codehub.policy.model import Principal


def operator() -> Principal:
    """For what acts on this machine without the API; history and audit name who it was."""
    return model.operator(operator_name())


def operator_name() -> str:
    """Who runs this command: under sudo or doas, the person behind root."""
    behind = (os.environ.get("SUDO_USER") or os.environ.get("DOAS_USER")) if os.geteuid() == 0 else None
    try:
        return behind or pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
