"""What tests of assignments share: a class that is given a course."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from codehub.db import Connection
from codehub.web.services import Services
from tests.classes.test_classes import a_class
from tests.courses.writing import course, made
from tests.sessions.learning import Learner


async def assigned(teacher: Learner, class_: Any, written: Any, starts_on: str | None = "2026-03-02") -> Any:
    body = {"course_id": written["id"], **({"starts_on": starts_on} if starts_on else {})}
    status, found = await teacher.ask("POST", f"/classes/{class_['id']}/assignments", body)
    assert status == 201, found
    return found


async def a_taught_class(teacher: Learner, *learners: str, written: Any = None) -> tuple[Any, Any]:
    """With a course."""
    found = await a_class(teacher, *learners)
    body = await made(teacher, written or course())
    await assigned(teacher, found, body)
    return found, body


async def the_plan(learner: Learner) -> Any:
    (plan,) = (await learner.get("/plans"))["items"]
    return await learner.get(f"/plans/{plan['id']}")


async def fill(services: Services, class_id: str, count: int) -> None:
    """Learners `learner-1` and so on."""
    async with services.database.connection() as c:
        await c.execute(
            "INSERT INTO users (id, name, display_name, role, created_at)"
            " SELECT 'u' || n, 'learner-' || n, '학생 ' || n, 'learner', now() FROM generate_series(1, $1::int) n",
            count,
        )
        await c.execute(
            "INSERT INTO class_members (class_id, user_id, role, came, joined_at)"
            " SELECT $1, 'u' || n, 'learner', 'made', now() FROM generate_series(1, $2::int) n",
            class_id,
            count,
        )


@contextlib.contextmanager
def statements(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What this process sends to the database meanwhile."""
    sent: list[str] = []
    original = services.database.connection

    @contextlib.asynccontextmanager
    async def connection() -> AsyncIterator[Connection]:
        async with original() as c:
            with c.query_logger(lambda record: sent.append(record.query)):  # type: ignore[attr-defined]
                yield c

    with monkeypatch.context() as patched:
        patched.setattr(services.database, "connection", connection)
        yield sent
