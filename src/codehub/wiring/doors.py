"""The keys of relays on other machines; nothing of them is loaded where workspaces are on this one."""

from typing import TYPE_CHECKING

from codehub.settings import Settings

if TYPE_CHECKING:
    from codehub.system.doors import Doors

KUBERNETES = "kubernetes"


def of(settings: Settings) -> "Doors | None":
    if settings.runtime.runtime != KUBERNETES or not settings.auth.secret_key:
        return None
    from codehub.system.doors import Doors  # noqa: PLC0415

    return Doors(settings.auth.secret_key)
