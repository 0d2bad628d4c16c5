"""Courses for tests, as requests have them."""

from typing import Any

from tests.sessions.learning import CHECK, LEARN, Learner


def session(key: str, day: int = 1, title: str = "", content: str = "# Hello") -> dict[str, Any]:
    return {
        "key": key,
        "title": title or key.title(),
        "day": day,
        "blueprint": {**LEARN, "learningContent": [content]},
    }


def course(*sessions: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = sessions or (session("one"), session("two", 3), {**session("three", 8), "blueprint": CHECK})
    return {"title": "Python", "language": "en", "sessions": list(given), **more}


async def made(who: Learner, body: dict[str, Any] | None = None) -> Any:
    status, found = await who.ask("POST", "/courses", body or course())
    assert status == 201, found
    return found


async def taken(who: Learner, course_id: str, **how: Any) -> Any:
    status, plan = await who.ask("POST", f"/courses/{course_id}/plans", how)
    assert status == 201, plan
    return plan


def shown(plan: Any) -> list[tuple[str, str, str, str]]:
    return [(s["key"], s["title"], s["scheduled_for_date"], s["status"]) for s in plan["sessions"]]
