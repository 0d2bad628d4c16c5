"""The API against its own description: Schemathesis sends what `/openapi.json` allows and what it does not.

Every check is on: no 5xx, nothing undocumented, answers as described, invalid input refused and valid accepted,
unsupported methods 405, credentials not ignored.
"""

import asyncio
import pathlib
import sys

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import ADMIN_TOKEN, Site

# What a blueprint must be beyond its own schema (COMPLETE last, ids that differ) no schema can say: valid is refused.
# What a passkey signs is more than base64, a password can be one of the most common, a time zone none of this world.
# To start a session that was skipped or canceled is 400, whatever the request looks like. And any text is a list.
# Who learns in a class is not in a schema, nor that a branch belongs to an address.
CONFIG = """
[[operations]]
include-path-regex = "^/api/v1/classes/.id./import$"
checks.negative_data_rejection.expected-statuses = ["2xx", 400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429, "5xx"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 413, 429, "5xx"]

[[operations]]
include-path-regex = "^/api/v1/(plans|courses|sessions|passkeys|join|users$|users/.name.$|users/.name./password$)"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429, "5xx"]

[[operations]]
include-path-regex = "^/api/v1/(workspaces|classes/.id./schedules)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429, "5xx"]
"""
SCHEMATHESIS = pathlib.Path(sys.executable).with_name("schemathesis")


async def run(site: Site, token: str, examples: int, folder: pathlib.Path) -> tuple[int, str]:
    """Exit code and output. In a process of its own: it is not asynchronous, and the server is in this one."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "run", f"{site.url}/openapi.json", "--header", f"Authorization: Bearer {token}"),
        # Streams have no end, and whoever reads one to its end waits for ever.
        *("--exclude-path", "/api/v1/events", "--exclude-path", "/api/v1/workspaces/{id}/logs/follow"),
        *("--exclude-path", "/api/v1/queue/stream"),
        # A deleted workspace lies in the trash and can still be read, on purpose.
        *("--exclude-checks", "use_after_free"),
        *(
            "--checks",
            "all",
            "--phases",
            "examples,coverage,fuzzing,stateful",
            "--max-examples",
            str(examples),
            "--generation-deterministic",
            "--no-color",
        ),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 900)
    return process.returncode or 0, output.decode()


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=pytest.mark.soak)])
async def test_the_api_is_what_it_says_it_is_for_an_admin(site: Site, tmp_path: pathlib.Path, examples: int) -> None:
    code, output = await run(site, ADMIN_TOKEN, examples, tmp_path)
    assert code == 0, output
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}" in output


@pytest.mark.soak
async def test_the_api_is_what_it_says_it_is_for_a_learner(site: Site, tmp_path: pathlib.Path) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    code, output = await run(site, await site.token("mina"), 100, tmp_path)
    assert code == 0, output
