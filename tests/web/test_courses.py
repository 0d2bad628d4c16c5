"""A teacher's pages of courses as any browser sends them: an archive, what it would do, saving exactly that."""

import asyncio
import html
import io
import re
import zipfile
from collections.abc import AsyncIterator

import aiohttp
import pytest
from yarl import URL

from codehub.command import operator
from codehub.courses import archive, drafts, folder, installation
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.courses.archives import COURSE, QUESTION, SESSION, SMALL, tarred, with_zip_link, zipped
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with
from tests.web.test_dashboard import page, post

SECOND = SESSION.replace("key: one", "key: two").replace("title: One", "title: Two")
LARGER = {**SMALL, "02-two/session.md": SECOND.replace(", CHECK", "")}


@pytest.fixture(autouse=True)
async def people(site: Site) -> None:
    for name, role in (("kim", Role.TEACHER), ("lee", Role.TEACHER), ("mina", Role.LEARNER), ("jun", Role.LEARNER)):
        await site.services.people.create_user(operator(), name, role)


@pytest.fixture
async def kim(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.browser("kim", Accept="text/html") as browser:
        yield browser


async def send(browser: aiohttp.ClientSession, data: bytes, course: str = "") -> tuple[int, str]:
    """The status, and where it leads or what it says."""
    form = aiohttp.FormData()
    form.add_field("course", course)
    form.add_field("file", data, filename="course.zip", content_type="application/zip")
    async with browser.post("/courses/import", data=form(), allow_redirects=False) as answer:
        said = html.unescape(await answer.text())
        return answer.status, answer.headers["location"] if answer.status == 303 else said


async def draft(browser: aiohttp.ClientSession, data: bytes, course: str = "") -> str:
    status, where = await send(browser, data, course)
    assert status == 303, where
    return where


async def saved(browser: aiohttp.ClientSession, where: str) -> str:
    """The course's page."""
    found = re.search(r'name="shown" value="([^"]+)"', await page(browser, where))
    assert found
    status, path, said = await post(browser, f"/do{where}/save", shown=found[1])
    assert (status, said) == (303, {"done": "saved"}), (path, said)
    return path


async def imported(browser: aiohttp.ClientSession, data: bytes, course: str = "") -> str:
    return (await saved(browser, await draft(browser, data, course))).rpartition("/")[2]


async def text(browser: aiohttp.ClientSession, path: str) -> str:
    """What a person reads on a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", await page(browser, path))).split())


async def raw(browser: aiohttp.ClientSession, path: str) -> str:
    async with browser.get(path) as answer:
        assert answer.status == 200
        return await answer.text()


async def download(browser: aiohttp.ClientSession, path: str) -> dict[str, str]:
    async with browser.get(path) as answer:
        assert (answer.status, answer.content_type) == (200, "application/zip")
        with zipfile.ZipFile(io.BytesIO(await answer.read())) as packed:
            return {name.partition("/")[2]: packed.read(name).decode() for name in packed.namelist()}


async def rows(site: Site, table: str) -> int:
    async with site.services.database.connection() as c:
        found: int = await c.fetchval(f"SELECT count(*) FROM {table}")
        return found


# --- from nothing to a second version ---------------------------------------------------------------------------------


async def test_the_first_page_teaches_and_its_example_can_be_imported(kim: aiohttp.ClientSession) -> None:
    first = await text(kim, "/courses")
    assert "Write your first course" in first
    example = await download(kim, "/courses/example.zip")
    assert {"course.md", "01-hello/session.md", "01-hello/solutions/reference.sh"} <= example.keys()
    id_ = await imported(kim, zipped(example, "my-course/"))
    listed = await text(kim, "/courses")
    assert "Write your first course" not in listed
    assert f'href="/courses/{id_}"' in await page(kim, "/courses")
    assert "Offered English 1 1 session no plan yet" in listed


async def test_nothing_is_saved_before_it_is_said_and_then_exactly_what_was_shown(
    site: Site, kim: aiohttp.ClientSession
) -> None:
    where = await draft(kim, zipped(SMALL))
    assert "This would be a new course of yours." in await text(kim, where)
    assert await rows(site, "courses") == 0
    path = await saved(kim, where)
    assert "Version 1 · English · 1 session" in await text(kim, path)
    assert "Saved." in await text(kim, f"{path}?done=saved")
    async with kim.get(where, allow_redirects=False) as again:  # the back button
        assert (again.status, again.headers["location"]) == (303, path)


async def test_what_a_second_version_changes_is_shown_before_and_after(kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(LARGER))
    changed = {
        "course.md": COURSE.replace("title: Small", "title: Larger"),
        "01-two/session.md": LARGER["02-two/session.md"],
        "02-one/session.md": SESSION.replace("# Hello", "# Hello again"),
        "02-one/check.md": QUESTION + QUESTION.replace("## q", "## more"),
        "03-three/session.md": SECOND.replace("two", "three").replace(", CHECK", "").replace("Two", "Three"),
    }
    where = await draft(kim, tarred(changed, "anything/"))
    shown = await text(kim, where)
    for said in (
        "This would be version 2 of “Small”.",
        "No learner has this course yet.",
        "Title: Small → Larger",
        "new sessions: 1 · changed: 1 · moved: 1",
        "Pages of text changed: 1",
        "Question added: more",
    ):
        assert said in shown
    await saved(kim, where)
    after = await text(kim, f"/courses/{id_}")
    assert "Version 2 kim" in after
    assert "Title: Small → Larger" in after
    exactly = await text(kim, f"/courses/{id_}/versions/2")
    assert "Question added: more" in exactly
    assert "The first version." in await text(kim, f"/courses/{id_}/versions/1")
    assert (await download(kim, f"/courses/{id_}/archive.zip?version=1"))["course.md"].count("title: Small")


async def test_a_double_click_makes_one_version_and_one_course(site: Site, kim: aiohttp.ClientSession) -> None:
    without_key = {**SMALL, "course.md": COURSE.replace("key: small\n", "")}
    where = await draft(kim, zipped(without_key))
    shown = re.search(r'name="shown" value="([^"]+)"', await page(kim, where))
    assert shown
    both = await asyncio.gather(*(post(kim, f"/do{where}/save", shown=shown[1]) for _ in range(4)))
    assert len(set(map(str, both))) == 1
    assert (await rows(site, "courses"), await rows(site, "course_versions")) == (1, 1)


async def test_what_changed_meanwhile_is_shown_before_anything_is_saved(site: Site, kim: aiohttp.ClientSession) -> None:
    await imported(kim, zipped(SMALL))
    mine = await draft(kim, zipped({**SMALL, "course.md": COURSE.replace("Small", "Mine")}))
    shown = re.search(r'name="shown" value="([^"]+)"', await page(kim, mine))
    await imported(kim, zipped({**SMALL, "course.md": COURSE.replace("Small", "Other")}))
    assert shown
    refused = await post(kim, f"/do{mine}/save", shown=shown[1])
    assert refused == (303, mine, {"problem": "COURSE_DRAFT_CHANGED"})
    assert "version 3 of “Other”" in await text(kim, mine)
    assert await rows(site, "course_versions") == 2
    assert "The course has changed since you looked." in await text(kim, f"{mine}?problem=COURSE_DRAFT_CHANGED")
    for invented in ("", "x", "0" * 16 + ":new"):
        assert (await post(kim, f"/do{mine}/save", shown=invented))[2] == {"problem": "COURSE_DRAFT_CHANGED"}


async def test_the_same_again_changes_nothing(kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(SMALL))
    exported = await download(kim, f"/courses/{id_}/archive.zip")
    where = await draft(kim, zipped(exported, "copy/"))
    shown = await page(kim, where)
    assert "Nothing changed: it is the same as version 1 of “Small”." in html.unescape(shown)
    assert 'id="save"' not in shown


async def test_the_shipped_courses_exported_and_imported_again_change_nothing(site: Site) -> None:
    await installation.run(site.services.courses)
    async with site.services.database.connection() as c:
        shipped = await c.fetch("SELECT id FROM courses WHERE is_shipped")
    assert len(shipped) == 4
    async with site.browser("admin", Accept="text/html") as admin:
        for row in shipped:
            exported = await download(admin, f"/courses/{row['id']}/archive.zip")
            for course in ("", row["id"]):
                where = await draft(admin, zipped(exported, "x/"), course)
                assert "Nothing changed: it is the same as" in await text(admin, where)
        changed = {**exported, "course.md": exported["course.md"] + "\nMore.\n"}
        where = await draft(admin, zipped(changed), row["id"])
        said = await text(admin, where)
        assert "This would be a new course of yours." in said
        assert "comes with CodeHub and stays as it is" in said
        own = await saved(admin, where)
        assert own != f"/courses/{row['id']}"


# --- whom it reaches --------------------------------------------------------------------------------------------------


async def test_the_plans_that_a_new_version_reaches_are_counted(site: Site, kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(LARGER))
    for name in ("mina", "jun"):
        async with site.browser(name) as browser:
            status, plan = await Learner(browser).ask("POST", f"/courses/{id_}/plans", {})
            assert status == 201
            if name == "mina":
                await Learner(browser).ask("POST", f"/sessions/{plan['sessions'][0]['id']}/runs")
    changed = {**LARGER, "01-one/session.md": SESSION.replace("# Hello", "# Other")}
    del changed["02-two/session.md"]
    shown = await text(kim, await draft(kim, zipped(changed)))
    assert "2 plans of learners have this course." in shown
    assert "Plans that get the change: 1. Plans in which it was begun or has ended, and stays as it was: 1." in shown
    assert "Plans in which it is canceled: 2." in shown


# --- what is wrong ----------------------------------------------------------------------------------------------------


async def test_all_mistakes_are_told_by_file_and_line_in_the_readers_language(
    site: Site, kim: aiohttp.ClientSession
) -> None:
    wrong = {
        **SMALL,
        "course.md": COURSE.replace("language: en", "language: english!"),
        "01-one/session.md": SESSION.replace("day: 1", "day: soon").replace(", COMPLETE", ""),
        "02-two/notes.txt": "x",
    }
    status, said = await send(kim, zipped(wrong))
    assert status == 400
    for part in ("4 mistakes", "course.md", "must be the code of a language", "COMPLETE is missing", "line 4"):
        assert part in said
    assert "has no session.md: each folder of a course is a session" in said
    async with site.browser("lee", **{"Accept-Language": "ko"}) as lee:
        status, said = await send(lee, zipped(wrong))
        for part in ("en, ko 같은 언어 코드여야 합니다", "COMPLETE가 빠졌습니다", "day: 정수여야 합니다", "4번째 줄"):
            assert part in said
        assert "must be" not in said
    assert (await rows(site, "course_drafts"), await rows(site, "courses")) == (0, 0)


async def test_a_template_that_is_not_here_is_told_at_its_line(kim: aiohttp.ClientSession) -> None:
    practice = "---\ntemplate: no-such-ide\n---\nDo it.\n"
    session = SESSION.replace("CHECK", "PRACTICE")
    status, said = await send(kim, zipped({**SMALL, "01-one/session.md": session, "01-one/practice.md": practice}))
    assert (status, "there is no template 'no-such-ide'" in said, "practice.md" in said) == (400, True, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Choose an archive first."),
        (b"%PDF-1.7 nothing", "neither a .zip nor a .tar.gz"),
        (zipped(SMALL)[:100], "damaged"),
        (zipped({**SMALL, "../../etc/passwd": "x"}), "“../../etc/passwd” leads out of the archive"),
        (tarred({**SMALL, "/etc/passwd": "x"}), "leads out of the archive"),
        (with_zip_link(SMALL, "01-one/files/x", "/etc/passwd"), "is a link: put the file itself here"),
        (zipped({f"01-one/files/{n}": bytes(1_000_000) for n in range(12)}), "at most 10 MB"),
        (zipped({f"{a}/{b}": text for a in ("en", "ko") for b, text in SMALL.items()}), "several courses"),
        (zipped({**SMALL, "01-one/session.md": SESSION.encode("utf-16")}), "is not"),
    ],
    ids=["nothing", "kind", "cut", "outside", "absolute", "link", "bomb", "several", "encoding"],
)
async def test_a_hostile_archive_is_refused_with_a_reason(
    site: Site, kim: aiohttp.ClientSession, data: bytes, said: str
) -> None:
    status, shown = await send(kim, data)
    assert (status, said in shown) == (400, True), shown
    assert await rows(site, "course_drafts") == 0


async def test_a_body_that_is_larger_than_any_course_is_not_read(kim: aiohttp.ClientSession) -> None:
    async with kim.post(
        "/courses/import", data=b"x", headers={"content-length": str(archive.LARGEST * 2)}, allow_redirects=False
    ) as answer:
        assert answer.status == 413


async def test_what_a_course_says_is_text_on_every_page(kim: aiohttp.ClientSession) -> None:
    hostile = "<script>alert(1)</script>"
    files = {
        "course.md": COURSE.replace("title: Small", f'title: "{hostile}"'),
        "01-one/session.md": SESSION.replace("title: One", f'title: "{hostile}"').replace("# Hello", hostile),
        "01-one/check.md": QUESTION.replace("a: A", f'a: "{hostile}"'),
        f"{'x' * 20}<b>.txt": "x",
    }
    where = await draft(kim, zipped(files))
    pages = [where, f"{where}/preview", f"{where}/preview/one?step=1", f"{where}/preview/one?step=2"]
    for path in pages:
        shown = await raw(kim, path)
        assert hostile not in shown
        assert "<b>" not in shown
    here = await saved(kim, where)
    for path in ("/courses", here, f"{here}/versions/1", f"{here}/preview/one?step=1", "/learn"):
        assert hostile not in await raw(kim, path)


# --- drafts are one's own, few, and not for long ----------------------------------------------------------------------


async def test_drafts_are_few_and_are_forgotten_after_an_hour(
    site: Site, kim: aiohttp.ClientSession, clock: ManualClock
) -> None:
    made = []
    for n in range(8):
        made.append(await draft(kim, zipped({**SMALL, "course.md": COURSE.replace("Small", f"S{n}")})))
        await clock.advance(1)
    assert await rows(site, "course_drafts") == drafts.MOST_KEPT
    gone = await text(kim, made[0])
    assert "What you sent is not kept any more" in gone
    await clock.advance(3601)
    for path in (made[-1], f"{made[-1]}/preview"):
        assert "What you sent is not kept any more" in await text(kim, path)
    assert (await post(kim, f"/do{made[-1]}/save", shown="x"))[1:] == (
        "/courses/import",
        {"problem": "COURSE_DRAFT_NOT_FOUND"},
    )
    await draft(kim, zipped(SMALL))
    assert await rows(site, "course_drafts") == 1


async def test_any_process_can_be_asked_next(
    site: Site, settings: Settings, clock: ManualClock, kim: aiohttp.ClientSession
) -> None:
    where, token = await draft(kim, zipped(SMALL)), await site.token("kim")
    async with serving_with(settings, clock) as second, second.client(token) as there:
        path = await saved(there, where)
    assert "Version 1" in await text(kim, path)


async def test_whatever_an_address_says_it_is_no_accident(kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(SMALL))
    for form in (
        "/do/courses/%00/withdraw",
        "/do/courses/%00/assign",
        "/do/courses/%00/take",
        "/do/courses/drafts/%00/save",
    ):
        async with kim.post(URL(form, encoded=True), data={"class_id": "x"}) as answer:
            assert answer.status < 500, form
    odd = ("%00", "%ff", "x" * 300, "..%2f..", "0", "-1", "99999999999999999999", "٣")
    paths = ("/courses/{}", "/courses/drafts/{}", "/courses/drafts/{}/preview", f"/courses/{id_}/versions/{{}}")
    queries = ("preview/one?step={}", "preview/one?version={}", "archive.zip?version={}", "?before={}", "preview/{}")
    for value in odd:
        for path in (*paths, "/courses/import?course={}", *(f"/courses/{id_}/{query}" for query in queries)):
            async with kim.get(URL(path.format(value), encoded=True)) as answer:
                assert answer.status < 500, (path, value)


async def test_others_have_nothing_of_it(site: Site, kim: aiohttp.ClientSession) -> None:
    where = await draft(kim, zipped(SMALL))
    id_ = await imported(kim, zipped({**SMALL, "course.md": COURSE.replace("small", "other")}))
    of_course = ("", "/preview", "/preview/one?step=1", "/archive.zip", "/versions/1")
    for name in ("lee", "mina"):
        async with site.browser(name, Accept="text/html") as other:
            for path in of_course:
                async with other.get(f"/courses/{id_}{path}") as answer:
                    assert (answer.status, "Which?" in await answer.text()) == (403, False), path
            for path in (where, f"{where}/preview/one?step=1"):
                async with other.get(path) as answer:
                    assert "Which?" not in await answer.text()
            status, _, said = await post(other, f"/do{where}/save", shown="x")
            expected = {"lee": (303, {"problem": "COURSE_DRAFT_NOT_FOUND"}), "mina": (403, {})}
            assert (status, said) == expected[name]
            status, said_ = await send(other, zipped(SMALL), id_)
            assert status == 403, said_
    async with site.browser("mina", Accept="text/html") as mina:
        for path in ("/courses", "/courses/import", "/courses/example.zip"):
            async with mina.get(path) as answer:
                assert answer.status == 403
        assert 'href="/courses"' not in await page(mina, "/learn")
    async with site.client(Accept="text/html") as stranger, stranger.get(where, allow_redirects=False) as answer:
        assert answer.status == 303


# --- as learners see it -----------------------------------------------------------------------------------------------


async def test_a_preview_shows_every_step_and_is_no_run(site: Site, kim: aiohttp.ClientSession) -> None:
    example = await download(kim, "/courses/example.zip")
    where = await draft(kim, zipped(example))
    key = "hello"
    seen = [await text(kim, f"{where}/preview/{key}?step={n}") for n in range(4)]
    assert all("Preview: this is what learners see." in shown for shown in seen)
    path = await saved(kim, where)
    assert [(await text(kim, f"{path}/preview/{key}?step={n}"))[-200:] for n in range(4)] == [s[-200:] for s in seen]
    assert "Shown to you because the course is yours to change." in seen[1]
    assert "<form" not in (await page(kim, f"{path}/preview/{key}")).partition("<main")[2].partition("<footer")[0]
    assert (await rows(site, "session_runs"), await rows(site, "plans")) == (0, 0)
    async with kim.get(f"{path}/preview/nothing") as answer:
        assert answer.status == 404


# --- one course -------------------------------------------------------------------------------------------------------


async def test_a_course_is_withdrawn_and_offered_again_on_its_page(kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(SMALL))
    here = f"/courses/{id_}"
    assert await post(kim, f"/do{here}/withdraw", then="course") == (303, here, {"done": "withdrawn"})
    shown = await text(kim, f"{here}?done=withdrawn")
    assert "Withdrawn. Learners who have started it go on." in shown
    assert "offer it again to give it to a class" in shown
    assert await post(kim, f"/do{here}/offer", then="course") == (303, here, {"done": "offered"})
    assert "Offered: learners can start it." in await text(kim, f"{here}?done=offered")


async def test_a_course_is_given_to_one_of_ones_classes(site: Site, kim: aiohttp.ClientSession) -> None:
    id_ = await imported(kim, zipped(SMALL))
    here = f"/courses/{id_}"
    assert "You have no class yet." in await text(kim, here)
    _, class_page, _ = await post(kim, "/do/classes", title="Mondays")
    class_id = class_page.rpartition("/")[2]
    assert "Mondays" in await text(kim, here)
    typed = {"class_id": class_id, "starts_on": "soon"}
    assert (await post(kim, f"/do{here}/assign", **typed))[1:] == (
        here,
        {"problem": "STARTS_ON", "at": "assign", **typed},
    )
    given: tuple[int, str, dict[str, str]] = (303, f"/classes/{class_id}/board", {"done": "given"})
    for _ in range(2):
        assert await post(kim, f"/do{here}/assign", class_id=class_id, starts_on="2026-03-02") == given
    assert "All your classes have it." in await text(kim, here)
    async with site.browser("lee") as lee:
        assert (await post(lee, f"/do{here}/assign", class_id=class_id))[2]["problem"] == "CLASS_NOT_FOUND"
    for path in ("/learn", class_page, f"/classes/{class_id}/board"):
        assert 'href="/courses' in (await page(kim, path)).partition("<main")[2]


async def test_admins_see_all_courses_and_others_their_own(site: Site, kim: aiohttp.ClientSession) -> None:
    await imported(kim, zipped(SMALL))
    async with site.browser("lee") as lee:
        assert "Small" not in await text(lee, "/courses")
    async with site.browser("admin") as admin:
        listed = await text(admin, "/courses")
        assert "Small" in listed
        assert "kim" in listed


async def test_in_korean_the_pages_are_korean(site: Site) -> None:
    async with site.browser("lee", **{"Accept-Language": "ko"}) as lee:
        example = await download(lee, "/courses/example.zip")
        assert "language: ko" in example["course.md"]
        where = await draft(lee, zipped(example))
        assert "저장하면 새 강의가 만들어집니다." in await text(lee, where)
        path = await saved(lee, where)
        assert "미리보기: 학습자에게 이렇게 보입니다." in await text(lee, f"{path}/preview")


def test_every_folder_that_is_read_can_be_written() -> None:
    read = folder.examine_tree(archive.read(zipped(SMALL)))[0]
    assert read is not None
    assert folder.texts(read).keys() == SMALL.keys()
