"""May this coordinator lead here? Only where it sees the files of the workspaces. Asked once, when it starts."""

from codehub.db import Database
from codehub.errors import StartError
from codehub.runtimes.base import Runtime
from codehub.workspaces.store import sql


async def require(database: Database, runtime: Runtime) -> None:
    """Refuses a machine that would take over what it cannot see: it would call every home there lost."""
    async with database.connection() as c:
        unknown = {row["id"]: row["volume_generation"] for row in await c.fetch(sql.without_node)}
    found = await runtime.volumes(list(unknown))
    ours = [id_ for id_, volume in found.items() if unknown[id_] in {volume.generation, volume.parked_generation}]
    async with database.connection() as c:
        await c.execute(sql.claim, runtime.node, [*ours, *found.unreadable])
        elsewhere = await c.fetchval(sql.elsewhere, runtime.node)
    if elsewhere:
        raise StartError(
            f"{elsewhere} workspaces of this database have their files below another data directory, or with another "
            f"runtime (this is node {runtime.node}), and workspaces are seen only where they are. Run the coordinator "
            "there, with that CODEHUB_DATA_DIR and CODEHUB_RUNTIME; or move everything here: `codehub backup` there, "
            "then `codehub restore`"
        )
