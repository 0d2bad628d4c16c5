"""The API tells history and audit in the client's language, beside the codes that programs go by."""

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site

LAB = {"name": "Lab", "template": "terminal", "desired_state": "ARCHIVED"}


async def test_history_and_audit_are_told_in_the_clients_language(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.client(await site.token("mina")) as mina, mina.post("/api/v1/workspaces", json=LAB) as answer:
        history = f"/api/v1/workspaces/{(await answer.json())['id']}/history"
    for language, created, added in (
        ("en", "mina created it", " added mina (Learner)"),
        ("ko-KR,ko;q=0.9", "mina님이 만들었습니다", "님이 mina님을 추가했습니다(학습자)"),
    ):
        async with site.admin(**{"Accept-Language": language}) as admin:
            async with admin.get(history) as answer:
                (line,) = (await answer.json())["items"]
                assert answer.headers["content-language"] == language[:2]
                assert "accept-language" in answer.headers["vary"].lower()
            assert (line["code"], line["data"], line["event"]) == ("created", {"desired_state": "ARCHIVED"}, "created")
            assert line["reason"] == created
            async with admin.get("/api/v1/admin/audit?subject=mina") as answer:
                found = {entry["code"]: entry for entry in (await answer.json())["items"]}
            assert found["user.create"]["sentence"].endswith(added)
            assert found["user.create"]["action"] == "user.create"
