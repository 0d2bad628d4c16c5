"""The pages of classes, and their forms, as a browser without JavaScript sends them."""

import re

from codehub.auth.profiles import Profile
from codehub.command import operator
from codehub.policy.model import Role
from codehub.policy.rules import TEACHERS_FACTOR
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.classes.test_invitations import invite
from tests.sessions.learning import Learner
from tests.web.server import Site


async def test_a_teacher_makes_a_class_and_a_code_and_shows_it_on_the_wall(site: Site, kim: Learner) -> None:
    async with site.browser("kim") as browser:
        async with browser.get("/classes") as answer:
            assert "Your first class" in await answer.text()
        async with browser.post("/do/classes", data={"title": "월요일 파이썬"}) as answer:
            path, page = answer.url.path, await answer.text()
        assert re.fullmatch(r"/classes/[a-z0-9]+", path)
        assert "월요일 파이썬" in page
        do = path.replace("/classes/", "/do/classes/")
        async with browser.post(f"{do}/invite", data={"valid": "day", "max_uses": "30"}) as answer:
            page = await answer.text()
        (listed,) = (await kim.get(f"{path}/invitations"))["items"]
        assert f"/join/{listed['code']}" in page
        assert listed["max_uses"] == 30
        assert "CODEHUB_HOST" in page  # this lab listens to its own machine alone
        async with browser.get(f"{path}/wall") as answer:
            wall = await answer.text()
        assert f"{listed['code'][:3]} {listed['code'][3:]}" in wall
        assert "<svg" in wall
        async with browser.post(f"{do}/revoke", data={"invitation": listed["id"]}) as answer:
            assert listed["code"] not in await answer.text()
        async with browser.post(f"{do}/revoke", data={"invitation": listed["id"]}) as answer:
            assert answer.status == 200  # a second click


async def test_wrong_input_is_said_on_the_page_and_changes_nothing(site: Site, kim: Learner, lee: Learner) -> None:
    made = await a_class(kim)
    do = f"/do/classes/{made['id']}"
    async with site.browser("kim") as browser:
        for verb, form, said in [
            ("rename", {"title": " "}, "1 to 100 characters"),
            ("add", {"name": "nobody-here"}, "There is no user of that name"),
            ("add", {"name": "lee"}, "Only accounts of learners"),
            ("remove", {"name": "kim"}, "keeps one teacher"),
            ("invite", {"max_uses": "many"}, "whole number"),
            ("invite", {"max_uses": "10001"}, "whole number"),
            ("delete", {}, "not understood"),
        ]:
            async with browser.post(f"{do}/{verb}", data=form) as answer:
                assert said in await answer.text(), verb
        async with browser.post("/do/classes", data={"title": "x" * 101}) as answer:
            assert "1 to 100 characters" in await answer.text()
        async with browser.post(f"{do}/nothing") as answer:
            assert answer.status == 404
    assert (await kim.get(f"/classes/{made['id']}"))["title"] == made["title"]


async def test_what_forms_of_a_class_make_is_counted_as_what_the_api_makes(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    most = site.services.settings.limits.max_creations_per_minute * TEACHERS_FACTOR
    for kind in ("person", "invitation"):
        for _ in range(most):
            await site.services.rates.spend(kind, "kim", most)
    async with site.browser("kim") as browser:
        for verb, form in (("person", {"display_name": "Jun"}), ("invite", {})):
            sent = browser.post(f"/do/classes/{made['id']}/{verb}", data=form, allow_redirects=False)
            async with sent as answer:
                assert "problem=RATE_LIMIT" in answer.headers["location"]
    assert (await kim.get(f"/classes/{made['id']}/invitations"))["items"] == []


async def test_archiving_can_be_undone_and_deleting_asks(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    do = f"/do/classes/{made['id']}"
    async with site.browser("kim") as browser:
        async with browser.post(f"{do}/archive") as answer:
            assert "Undo" in await answer.text()
        async with browser.get("/classes") as answer:
            assert "Archive (1)" in await answer.text()
        async with browser.post(f"{do}/unarchive") as answer:
            assert "Undo" not in await answer.text()
        async with browser.post(f"{do}/delete", data={"sure": "yes"}) as answer:
            assert answer.url.path == "/classes"
        async with browser.get(f"/classes/{made['id']}") as answer:
            assert answer.status == 404


async def test_a_learner_sees_the_title_and_the_teachers_and_no_other_learner(
    site: Site, kim: Learner, person: Enrol
) -> None:
    for name in ("mina", "secret-jun"):
        await person(name)
    made = await a_class(kim, "mina", "secret-jun")
    code = (await invite(kim, made["id"]))["code"]
    async with site.browser("mina") as browser:
        async with browser.get(f"/classes/{made['id']}") as answer:
            page = await answer.text()
        assert "Taught by kim" in page
        assert "secret-jun" not in page
        assert code not in page
        for path in (f"/classes/{made['id']}/wall",):
            async with browser.get(path) as answer:
                assert answer.status == 403
        async with browser.post(f"/do/classes/{made['id']}/rename", data={"title": "Mine"}) as answer:
            assert "You may not do this" in await answer.text()


async def test_another_teacher_finds_no_class(site: Site, kim: Learner, lee: Learner) -> None:
    made = await a_class(kim)
    async with site.browser("lee") as browser:
        for path in (f"/classes/{made['id']}", f"/classes/{made['id']}/wall"):
            async with browser.get(path) as answer:
                assert answer.status == 404
        async with browser.post(f"/do/classes/{made['id']}/archive") as answer:
            assert answer.status == 404
    assert (await kim.get(f"/classes/{made['id']}"))["archived_at"] is None


async def test_the_navigation_leads_to_classes_where_one_has_or_may_have_some(
    site: Site, kim: Learner, person: Enrol
) -> None:
    await person("mina")
    await person("jun")
    await person("boss", Role.ADMIN)
    await a_class(kim, "mina")
    for name, shown in (("kim", True), ("mina", True), ("jun", False), ("boss", True)):
        async with site.browser(name) as browser, browser.get("/") as answer:
            assert ('href="/classes"' in await answer.text()) is shown, name


async def test_the_page_says_what_each_learner_is_doing(site: Site, kim: Learner, person: Enrol) -> None:
    mina = await person("mina")
    made = await a_class(kim, "mina")
    plan = await mina.plan()
    await mina.ask("POST", f"/sessions/{plan['sessions'][0]['id']}/runs")
    status, w = await mina.ask(
        "POST", "/workspaces", {"name": "Recursion", "template": "terminal", "desired_state": "STANDBY"}
    )
    assert status == 201, w
    mina_herself = await site.services.credentials.by_token(await site.token("mina"))
    await site.services.waiting_room.join(mina_herself, "lab")
    async with site.browser("kim") as browser, browser.get(f"/classes/{made['id']}") as answer:
        page = await answer.text()
    assert f'href="/workspaces/{w["id"]}"' in page
    assert plan["sessions"][0]["title"] in page
    assert "step 1 of" in page
    assert "Waits in line" in page


async def test_a_teacher_opens_a_learners_workspace_page_and_is_offered_what_they_may(
    site: Site, kim: Learner, lee: Learner, person: Enrol
) -> None:
    mina = await person("mina")
    _, w = await mina.ask(
        "POST", "/workspaces", {"name": "Recursion", "template": "terminal", "desired_state": "STANDBY"}
    )
    async with site.services.database.transaction() as c:
        await c.execute("UPDATE workspaces SET observed_status = 'STANDBY' WHERE id = $1", w["id"])
    await a_class(kim, "mina")
    async with site.browser("kim") as browser, browser.get(f"/workspaces/{w['id']}") as answer:
        page = await answer.text()
    assert answer.status == 200
    assert f"/do/{w['id']}/start" in page
    assert "If you open it, mina is told at once, and finds it in the history." in page
    for verb in ("rename", "share", "delete", "archive", "purge"):
        assert f"/do/{w['id']}/{verb}" not in page
    async with site.browser("kim") as browser, browser.get(f"/workspaces/{w['id']}/log") as answer:
        assert answer.status == 200
    async with site.browser("lee") as browser, browser.get(f"/workspaces/{w['id']}") as answer:
        assert answer.status == 404


async def test_what_was_typed_comes_back_beside_its_form_with_what_is_wrong(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    for form, fields, fold in [
        ("person", {"display_name": "김민아", "name": "Not a name!"}, "adding"),
        ("add", {"name": "nobody-here"}, "adding"),
        ("teacher", {"name": "nobody-there"}, "settings"),
        ("rename", {"title": "t" * 60 + "\u202e"}, "settings"),
        ("invite", {"max_uses": "0"}, "invite"),
    ]:
        async with (
            site.browser("kim") as browser,
            browser.post(f"/do/classes/{made['id']}/{form}", data=fields) as answer,
        ):
            page = await answer.text()
        assert page.count('role="alert"') == 2, form  # and the one that says that the login is over, which is hidden
        opened = page.partition(f'id="{fold}" open')[2]
        assert f'id="{form}-problem"' in opened, form
        shown = opened.partition(f'/{form}"')[2].partition("</form>")[0]
        for value in fields.values():
            assert f'value="{value}"' in shown, form
        assert "autofocus" in shown


async def test_what_another_tab_still_offers_of_an_archived_class_is_refused_in_words(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    async with site.browser("kim") as browser:
        for verb, fields in (("person", {"display_name": "Mina"}), ("invite", {}), ("teacher", {"name": "kim"})):
            async with browser.post(f"/do/classes/{made['id']}/{verb}", data=fields) as answer:
                assert "Take it out of the archive first." in await answer.text(), verb


async def test_a_form_that_is_sent_twice_makes_one_thing(site: Site, kim: Learner) -> None:
    async with site.browser("kim") as browser:

        async def twice(page: str, path: str, ending: str = "", **fields: str) -> str:
            async with browser.get(page) as answer:
                numbers = re.findall(r'name="once" value="([^"]*)"', await answer.text())
            (number,) = [n for n in numbers if n.endswith(ending)]
            led = []
            for _ in range(2):
                async with browser.post(path, data={**fields, "once": number}, allow_redirects=False) as answer:
                    led.append(answer.headers["location"])
            assert led[0] == led[1]
            return led[0]

        page = await twice("/classes", "/do/classes", title="Python")
        assert len((await kim.get("/classes"))["items"]) == 1
        await twice(page, f"/do{page}/person", "person", display_name="김민아")
        await twice(page, f"/do{page}/invite", "invite", valid="day")
        async with browser.get(page) as answer:
            (number,) = re.findall(r'name="once" value="([^"]*person)"', await answer.text())
        for called in ("이서연", "박준"):  # back by the browser's button, and another one
            async with browser.post(f"/do{page}/person", data={"display_name": called, "once": number}) as answer:
                assert f"{called} has an account" in await answer.text()
    assert [m["name"] for m in (await kim.get(f"{page}/members"))["items"]] == [
        "kim",
        "bakjun",
        "gimmina",
        "iseoyeon",
    ]
    assert len((await kim.get(f"{page}/invitations"))["items"]) == 1


async def test_what_was_done_is_said_with_what_to_do_next(
    site: Site, kim: Learner, lee: Learner, person: Enrol
) -> None:
    await person("jun")
    made = await a_class(kim)
    do = f"/do/classes/{made['id']}"
    async with site.browser("kim") as browser:
        for verb, form, said in [
            ("person", {"display_name": "김민아"}, "김민아 has an account, and needs a way in:"),
            ("add", {"name": "jun"}, "jun is in the class."),
            ("teacher", {"name": "lee"}, "lee teaches this class, too."),
            ("remove", {"name": "jun"}, "is out of the class"),
            ("rename", {"title": "Java"}, "has a new name"),
        ]:
            async with browser.post(f"{do}/{verb}", data=form) as answer:
                assert said in await answer.text(), verb
        async with browser.get(f"/classes/{made['id']}?done=add&who=Call+555") as answer:
            assert "Call 555" not in await answer.text()  # an address cannot make our page say anything


async def test_who_is_out_already_is_no_error_and_who_takes_themselves_out_is_led_to_their_classes(
    site: Site, kim: Learner, lee: Learner, person: Enrol
) -> None:
    await person("mina")
    made = await a_class(kim, "mina")
    await kim.ask("POST", f"/classes/{made['id']}/members", {"name": "lee", "role": "teacher"})
    async with site.browser("kim") as browser:
        for _ in range(2):  # a second click, or another teacher
            async with browser.post(f"/do/classes/{made['id']}/remove", data={"name": "mina"}) as answer:
                page = await answer.text()
            assert "is out of the class" in page
            assert page.count('role="alert"') == 1
        async with browser.post(f"/do/classes/{made['id']}/remove", data={"name": "kim"}) as answer:
            assert (answer.status, answer.url.path) == (200, "/classes")
            assert "You are out of the class." in await answer.text()


async def test_people_are_in_the_order_of_what_they_are_called(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    for called, name in (("최윤", "aa"), ("가람", "zz"), ("Bo", "bo"), ("가람", "gg")):
        await kim.ask("POST", f"/classes/{made['id']}/people", {"display_name": called, "name": name})
    async with site.browser("kim") as browser:
        async with browser.get(f"/classes/{made['id']}") as answer:
            assert re.findall(r'<li id="p-(\w+)"', await answer.text()) == ["bo", "gg", "zz", "aa"]
        async with browser.get(f"/classes/{made['id']}/board") as answer:
            assert "This class has no course yet" in await answer.text()
        async with browser.post(f"/classes/{made['id']}/sheet") as answer:
            slips = re.findall(r'class="slip-name">([^<]+)</p><p>(\w+)', await answer.text())
    assert slips == [("Bo", "bo"), ("가람", "gg"), ("가람", "zz"), ("최윤", "aa")]


async def test_a_list_of_classes_says_what_teachers_are_called(site: Site, kim: Learner) -> None:
    await a_class(kim)
    await site.services.profiles.change(operator(), "kim", Profile("김선생"))
    async with site.browser("kim") as browser, browser.get("/classes") as answer:
        assert "김선생 (kim)" in await answer.text()
