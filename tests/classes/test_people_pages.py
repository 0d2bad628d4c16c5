"""Lists, sheets and one person's account, by the pages of a class, without JavaScript."""

import asyncio
import codecs
import html
import re
from collections.abc import Callable

import aiohttp
import pytest

from tests.classes.test_classes import a_class
from tests.classes.test_import import learners
from tests.sessions.learning import Learner
from tests.web.server import Site


def form(file: bytes = b"", /, **fields: str) -> aiohttp.FormData:
    """As a browser sends a form with a file, also where none was chosen."""
    made = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        made.add_field(name, value)
    made.add_field("file", file, filename="list.csv" if file else "", content_type="application/octet-stream")
    return made


def preview_of(page: str) -> dict[str, str]:
    """The form that the preview has: what was sent, and the digest of what will happen."""
    digest = re.search(r'name="digest" value="(\w+)"', page)
    kept = re.search(r'<textarea name="list" hidden>\n(.*?)</textarea>', page, re.DOTALL)
    assert digest
    assert kept
    return {"list": html.unescape(kept[1]), "digest": digest[1]}


LIST = "김민아\tmina\t1\r\n=cmd\tformula\t2\r\n\t\t\r\nlee\tlee\t3\r\n"


async def test_a_pasted_list_is_looked_at_and_then_done_exactly_so(site: Site, kim: Learner, lee: Learner) -> None:
    made = await a_class(kim)
    path = f"/classes/{made['id']}/import"
    async with site.browser("kim") as browser:
        async with browser.get(path) as answer:
            assert "See what will happen" in await answer.text()
        async with browser.post(path, data=form(list=LIST)) as answer:
            page = await answer.text()
        assert "2 new accounts" in page
        assert "teacher&#39;s or an admin&#39;s" in page
        assert await learners(kim, made["id"]) == {}
        agreed = preview_of(page)
        async with browser.post(path, data=form(**agreed, again="1")) as answer:
            assert "김민아" in await answer.text()
        async with browser.post(path, data=form(digest=agreed["digest"], list="Another,mina\n")) as answer:
            assert answer.status == 409
            assert "Something has changed" in await answer.text()
        for _ in range(2):  # a second click
            async with browser.post(path, data=form(**agreed)) as answer:
                pass
        assert sorted(await learners(kim, made["id"])) == ["formula", "mina"]
        async with browser.post(path, data=form(list="a\n" * 600)) as answer:
            assert (answer.status, "at most 500 people" in await answer.text()) == (400, True)


@pytest.mark.parametrize(
    ("encode", "encoding"),
    [
        (lambda text: text.encode(), "UTF-8"),
        (lambda text: codecs.BOM_UTF8 + text.encode(), "UTF-8"),
        (lambda text: text.encode("cp949"), "CP949"),
        (lambda text: text.encode("utf-16"), "UTF-16"),
    ],
    ids=["utf-8", "with a mark", "a Korean Excel", "utf-16"],
)
async def test_a_file_is_read_as_spreadsheets_save_it_and_kept_by_the_preview(
    site: Site, kim: Learner, encode: Callable[[str], bytes], encoding: str
) -> None:
    made = await a_class(kim)
    path = f"/classes/{made['id']}/import"
    async with site.browser("kim") as browser:
        async with browser.post(path, data=form(encode("이름,학번\r\n김민아,7\r\n박준,8\r\n"))) as answer:
            page = await answer.text()
        assert f"Read as {encoding}" in page
        agreed = preview_of(page)
        async with browser.post(path, data=form(**agreed, again="1")) as answer:  # to be corrected by hand
            assert "김민아,7" in await answer.text()
        async with browser.post(path, data=form(**agreed)) as answer:
            assert answer.url.path == f"/classes/{made['id']}"
    found = await learners(kim, made["id"])
    assert {m["display_name"]: m["school_id"] for m in found.values()} == {"김민아": "7", "박준": "8"}


@pytest.mark.parametrize(
    ("file", "english", "korean"),
    [
        (b"PK\x03\x04\x14\0\x06\0" + bytes(range(256)), "save it as “CSV UTF-8", "‘CSV UTF-8"),
        (b"Jos\xe9,\xff\xfe\x81\n", "Save it as “CSV UTF-8”", "‘CSV UTF-8’"),
        (b"a,b\n" * 100_000, "too large", "너무 큽니다"),
        (b"", "The list is empty", "명단이 비어 있습니다"),
    ],
    ids=["a workbook", "other characters", "large", "none"],
)
async def test_a_file_that_is_no_list_is_refused_with_what_to_do(
    site: Site, kim: Learner, file: bytes, english: str, korean: str
) -> None:
    made = await a_class(kim)
    async with site.browser("kim") as browser:
        for language, said in (("en", english), ("ko", korean)):
            path = f"/classes/{made['id']}/import?lang={language}"
            async with browser.post(path, data=form(file)) as answer:
                assert (answer.status, said in await answer.text()) == (400, True), await answer.text()
        async with browser.post(f"/classes/{made['id']}/import", data={"list": "A"}) as answer:
            assert answer.status == 400  # no form of ours
    assert await learners(kim, made["id"]) == {}


async def test_a_file_beyond_all_bounds_gets_a_page_with_what_to_do(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    host, port = site.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))  # a client library stops listening while it sends
    writer.write(f"POST /classes/{made['id']}/import HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n".encode())
    writer.write(b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 9000000\r\n\r\n")
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()  # and the connection ends
    writer.close()
    assert answer.startswith("HTTP/1.1 413 ")
    assert "choose a smaller file" in answer


async def test_an_archived_class_offers_neither_a_list_nor_a_sheet(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    async with site.browser("kim") as browser:
        for path in ("import", "sheet"):
            async with browser.get(f"/classes/{made['id']}/{path}") as answer:
                page = await answer.text()
            assert "Take it out of the archive first." in page
            assert f'action="/classes/{made["id"]}/{path}"' not in page


async def test_of_a_list_what_is_wrong_is_said_first(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    async with (
        site.browser("kim") as browser,
        browser.post(f"/classes/{made['id']}/import", data=form(list="A\nB\n,,9\n")) as answer,
    ):
        page = await answer.text()
    assert re.findall(r'<tr class="\w+"><td>(\d)</td>', page) == ["3", "1", "2"]


async def test_a_sheet_of_links_is_shown_once_and_each_logs_its_person_in(site: Site, kim: Learner) -> None:
    made = await a_class(kim)
    await kim.ask("POST", f"/classes/{made['id']}/people", {"display_name": "김민아", "name": "mina"})
    async with site.browser("kim") as browser:
        async with browser.get(f"/classes/{made['id']}/sheet") as answer:
            assert "/login/" not in await answer.text()
        async with browser.post(f"/classes/{made['id']}/sheet") as answer:
            page = await answer.text()
            assert answer.headers["cache-control"] == "no-store"
    found = re.findall(r"/login/[\w-]{43}", page)
    assert len(found) == 1
    assert "김민아" in page
    async with site.client() as browser, browser.post(found[0], allow_redirects=False) as answer:
        assert answer.status == 303


async def test_a_teacher_gives_a_learner_a_new_link_a_password_and_another_name(
    site: Site, kim: Learner, lee: Learner, mina: Learner
) -> None:
    made = await a_class(kim, "mina")  # added: not theirs
    await kim.ask("POST", f"/classes/{made['id']}/people", {"display_name": "Jun", "name": "jun"})
    path = f"/classes/{made['id']}/people/jun"
    async with site.browser("kim") as browser:
        async with browser.post(f"{path}/link") as answer:
            assert re.search(r"/login/[\w-]{43}", await answer.text())
        async with browser.post(f"{path}/password", data={"password": "short"}) as answer:
            assert (answer.status, "at least 10" in await answer.text()) == (400, True)
        async with browser.post(f"{path}/password", data={"password": "seven green boats"}) as answer:
            assert "The password is set" in await answer.text()
        async with browser.post(f"{path}/name", data={"display_name": "박준"}) as answer:
            assert "박준" in await answer.text()
        for wrong in (f"/classes/{made['id']}/people/mina", f"/classes/{made['id']}/people/kim", path + "x"):
            async with browser.get(wrong) as answer:
                assert answer.status == 404, wrong
    async with site.browser("lee") as browser:
        for verb in ("link", "password", "name"):
            async with browser.post(f"{path}/{verb}", data={"password": "seven green boats"}) as answer:
                assert answer.status == 404
    async with (
        site.client() as browser,
        browser.post("/api/v1/login", json={"name": "jun", "password": "seven green boats"}) as answer,
    ):
        assert answer.status == 200
