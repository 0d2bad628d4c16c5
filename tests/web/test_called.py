"""Where people see people, they see what they are called, with the name beside it."""

from codehub.auth.profiles import Profile
from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.waiting_room.events import EventChange
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.web.server import Site


async def test_owners_guests_and_those_who_wait_are_called_by_their_display_names(site: Site) -> None:
    services = site.services
    for name, called in (("mina", "김<미>나"), ("jun", "Jun Lee")):
        await services.people.create_user(operator(), name, Role.LEARNER)
        await services.profiles.change(operator(), name, Profile(called))
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES, session_id="s")
    w = admitted(await services.workspaces.create(mina, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    await services.sharing.share(mina, w.id, "jun")
    await services.waiting_events.put(operator(), "quiz", EventChange(capacity=1))
    async with site.browser("jun") as jun, site.browser("admin") as admin, site.browser("mina") as owner:
        async with jun.post("/api/v1/queue/join", json={"event_id": "quiz"}) as answer:
            assert answer.status in {200, 201}, await answer.text()
        shown = {
            "/?everybody=1": (admin, "김&lt;미&gt;나 (mina)"),
            "/": (jun, "김&lt;미&gt;나 (mina)"),
            f"/workspaces/{w.id}": (owner, "Jun Lee (jun)"),
            "/lines/quiz": (admin, "Jun Lee (jun)"),
        }
        for path, (client, name) in shown.items():
            async with client.get(path, headers={"accept": "text/html"}) as answer:
                assert name in await answer.text(), path


async def test_a_workspaces_history_calls_people_as_its_page_does_and_a_removed_person_by_no_name(site: Site) -> None:
    services = site.services
    for name, called in (("mina", "김미나"), ("jun", "Jun Lee")):
        await services.people.create_user(operator(), name, Role.LEARNER)
        await services.profiles.change(operator(), name, Profile(called))
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES, session_id="s")
    w = admitted(await services.workspaces.create(mina, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    await services.sharing.share(mina, w.id, "jun")
    await services.sharing.unshare(mina, w.id, "jun")

    async def history(**headers: str) -> str:
        async with site.browser("mina", **headers) as owner, owner.get(f"/workspaces/{w.id}") as answer:
            return (await answer.text()).partition('<ol class="history">')[2].partition("</ol>")[0]

    assert "김미나 (mina) shared it with Jun Lee (jun)" in await history()
    assert "Jun Lee (jun)" in await history(**{"Accept-Language": "ko"})
    await services.removal.remove(operator(), "jun")
    shown = await history()
    assert "jun" not in shown.casefold()
    assert "김미나 (mina) shared it with removed-" in shown


async def test_a_deactivated_learners_run_takes_no_heartbeat_and_nothing_else(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as mina:
        lesson = {"steps": ["LEARN", "COMPLETE"], "learningContent": ["#"], "encouragement": "Yes"}
        session = {"title": "Say hello", "scheduled_for_date": "2026-03-02", "blueprint": lesson}
        async with mina.post("/api/v1/plans", json={"title": "Python", "sessions": [session]}) as answer:
            assert answer.status == 201, await answer.text()
            plan = await answer.json()
        async with mina.post(f"/api/v1/sessions/{plan['sessions'][0]['id']}/runs", json={}) as answer:
            assert answer.status == 201, await answer.text()
            run = await answer.json()
        await site.services.people.change_user(operator(), "mina", role=None, active=False)
        for path in (f"/api/v1/runs/{run['id']}/activity", "/api/v1/queue/join"):
            async with mina.post(path, json={"fence": run["fence"]}) as answer:
                assert answer.status == 401, path
