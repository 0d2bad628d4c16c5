"""Lists of people by the API: what a preview says, and that exactly that is done."""

import codecs
from typing import Any

import pytest

from codehub.classes import romanize, roster
from codehub.command import operator
from codehub.policy.model import Role
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.sessions.learning import Learner
from tests.web.server import Site

SURNAMES = "김이박최정강조윤장임"


async def send(who: Learner, class_id: str, raw: bytes | str, **query: str) -> tuple[int, Any]:
    body = raw.encode() if isinstance(raw, str) else raw
    path = f"/api/v1/classes/{class_id}/import"
    async with who.client.post(path, data=body, params=query, headers={"content-type": "text/csv"}) as answer:
        return answer.status, await answer.json()


async def preview(who: Learner, class_id: str, raw: bytes | str) -> Any:
    status, found = await send(who, class_id, raw, dry_run="true")
    assert status == 200, found
    return found


async def learners(who: Learner, class_id: str) -> dict[str, Any]:
    found = await who.get(f"/classes/{class_id}/members?limit=200")
    return {m["name"]: m for m in found["items"] if m["role"] == "learner"}


def a_list_of_forty() -> str:
    """With all that teachers' lists have: thirty-two new, two of elsewhere, one there, five that are wrong."""
    lines = [f"{SURNAMES[n % 10]}민{'가나다라마바사아'[n % 8]},,2026{n:03}" for n in range(30)]
    lines += ["=cmd|calc,formula,", "José García,,", "Jun,jun,", "Bo,bo,", "Already,mina,"]
    lines += [",,2026999", "Twice,,2026001", "A teacher,lee,", "Wrong name,Wrong Name!,", "Hidden\u202e,hidden,"]
    return "이름,아이디,학번\r\n" + "\r\n".join(lines) + "\r\n\r\n"


async def test_a_class_of_forty_comes_from_a_list_and_the_same_list_changes_nothing(
    site: Site, kim: Learner, lee: Learner, mina: Learner, person: Enrol
) -> None:
    for name in ("jun", "bo"):
        await person(name)
    made = await a_class(kim, "mina")
    raw = codecs.BOM_UTF8 + a_list_of_forty().encode()
    said = await preview(kim, made["id"], raw)
    assert said["counts"] == {"new": 32, "added": 2, "there": 1, "error": 5}
    assert (said["encoding"], said["delimiter"], said["has_header"]) == ("UTF-8", "comma", True)
    reasons = {line["line"]: line["reason"] for line in said["lines"] if line["outcome"] == "error"}
    assert list(reasons.values()) == ["NO_NAME", "TWICE", "NOT_A_LEARNER", "WRONG_NAME", "UNSEEN"]
    assert list(reasons) == [37, 38, 39, 40, 41]  # as they are counted in the file
    assert list(await learners(kim, made["id"])) == ["mina"]  # nothing happened yet
    status, done = await send(kim, made["id"], raw, digest=said["digest"])
    assert (status, done["lines"]) == (200, said["lines"])
    found = await learners(kim, made["id"])
    assert set(found) == {line["name"] for line in said["lines"] if line["outcome"] != "error"}
    assert len(found) == 35
    assert found["formula"]["display_name"] == "=cmd|calc"
    assert (found["jose-garcia"]["came"], found["jun"]["came"], found["mina"]["came"]) == ("made", "added", "added")
    assert {m["school_id"] for m in found.values() if m["school_id"]} == {f"2026{n:03}" for n in range(30)}
    again = await preview(kim, made["id"], raw)
    assert again["counts"] == {"new": 0, "added": 0, "there": 35, "error": 5}
    assert (await send(kim, made["id"], raw))[0] == 200
    assert await learners(kim, made["id"]) == found


async def test_what_changed_since_the_preview_is_said_and_nothing_is_done(kim: Learner, person: Enrol) -> None:
    made = await a_class(kim)
    raw = "Mina,mina\nJun,jun\n"
    said = await preview(kim, made["id"], raw)
    await person("jun")
    status, problem = await send(kim, made["id"], raw, digest=said["digest"])
    assert (status, problem["code"]) == (409, "IMPORT_CHANGED")
    assert await learners(kim, made["id"]) == {}
    assert (await send(kim, made["id"], raw, digest=problem["digest"]))[0] == 200


async def test_the_schools_number_says_who_it_is_also_in_another_class_of_the_same_teacher(
    kim: Learner, lee: Learner
) -> None:
    first, second = await a_class(kim), await a_class(kim, title="Java")
    await send(kim, first["id"], "김민아,,7\n")
    (name,) = await learners(kim, first["id"])
    said = await preview(kim, second["id"], "민아 김,another-name,7\n")
    assert [(line["outcome"], line["name"]) for line in said["lines"]] == [("added", name)]
    other = await a_class(lee)  # another school may have the same numbers
    said = await preview(lee, other["id"], "김민아,,7\n")
    assert [(line["outcome"], line["name"]) for line in said["lines"]] == [("new", f"{name}2")]


async def test_people_who_are_called_the_same_are_two_people_each_time(kim: Learner) -> None:
    made = await a_class(kim)
    raw = "김민수\n김민수\n"
    await send(kim, made["id"], raw)
    assert sorted(await learners(kim, made["id"])) == ["gimminsu", "gimminsu2"]
    said = await preview(kim, made["id"], raw + "김민수\n")
    assert [line["outcome"] for line in said["lines"]] == ["there", "there", "new"]


@pytest.mark.parametrize(
    ("raw", "encoding", "delimiter"),
    [
        (codecs.BOM_UTF8 + "김민아,mina,7\n".encode(), "UTF-8", "comma"),
        ("김민아;mina;7\r\n".encode(), "UTF-8", "semicolon"),
        ("김민아\tmina\t7\r\n".encode("utf-16"), "UTF-16", "tab"),
        ("Mina,mina,7\n".encode("utf-16-le"), "UTF-16", "comma"),
        ("김민아,mina,7\n".encode("cp949"), "CP949", "comma"),
        ('"김민아","mina","7"'.encode(), "UTF-8", "comma"),
        ("학번,아이디,이름\n7,mina,김민아\n".encode(), "UTF-8", "comma"),
    ],
)
def test_a_list_is_read_as_spreadsheets_write_it(raw: bytes, encoding: str, delimiter: str) -> None:
    read = roster.read(raw)
    assert (read.encoding, read.delimiter) == (encoding, delimiter)
    (line,) = read.lines
    assert (line.name, line.school_id) == ("mina", "7")
    assert line.display_name in {"김민아", "Mina"}
    assert line.problem is None


@pytest.mark.parametrize("raw", [b"", b"\n\n , ,\n", b"\xff\xff\xff,\x81", b"x" * 300_000, b"a\n" * 600, b"name\n"])
async def test_what_is_no_list_is_refused_with_what_to_do(kim: Learner, raw: bytes) -> None:
    made = await a_class(kim)
    status, problem = await send(kim, made["id"], raw, dry_run="true")
    if raw == b"name\n":
        assert (status, problem["lines"]) == (200, [])
        return
    assert status == (413 if len(raw) > 262_144 else 400), problem


@pytest.mark.parametrize(
    ("called", "name"),
    [("김민아", "gimmina"), ("박 서연", "bak-seoyeon"), ("José García", "jose-garcia"), ("王小明", None), ("!!", None)],
)
def test_a_user_name_is_made_of_what_a_person_is_called(called: str, name: str | None) -> None:
    assert romanize.user_name(called) == name


async def test_who_cannot_be_written_in_latin_letters_gets_a_number(kim: Learner) -> None:
    made = await a_class(kim)
    await send(kim, made["id"], "王小明\n李雷\n")
    assert sorted(await learners(kim, made["id"])) == ["learner-01", "learner-02"]


async def test_only_the_classs_teachers_import_and_an_archived_class_takes_nobody(
    kim: Learner, lee: Learner, mina: Learner
) -> None:
    made = await a_class(kim, "mina")
    assert (await send(lee, made["id"], "A\n"))[0] == 404
    assert (await send(mina, made["id"], "A\n"))[0] == 403
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    status, problem = await send(kim, made["id"], "A\n")
    assert (status, problem["code"]) == (409, "CLASS_ARCHIVED")


async def test_a_teacher_makes_one_person_and_looks_after_the_account(site: Site, kim: Learner, lee: Learner) -> None:
    made = await a_class(kim)
    status, new = await kim.ask("POST", f"/classes/{made['id']}/people", {"display_name": "김민아"})
    assert (status, new["name"]) == (201, "gimmina")
    status, problem = await kim.ask(
        "POST", f"/classes/{made['id']}/people", {"display_name": "Another", "name": "gimmina"}
    )
    assert (status, problem["code"], problem["suggestion"]) == (409, "USER_EXISTS", "gimmina2")
    assert (await learners(kim, made["id"]))["gimmina"]["came"] == "made"
    for call in ("login-links",):
        assert (await lee.ask("POST", f"/users/gimmina/{call}"))[0] == 404
        assert (await kim.ask("POST", f"/users/gimmina/{call}"))[0] == 201
    assert (await kim.ask("PATCH", "/users/gimmina", {"display_name": "민아"}))[0] == 200
    assert (await lee.ask("PATCH", "/users/gimmina", {"display_name": "Mine"}))[0] == 404
    assert (await kim.request("PUT", "/users/gimmina/password", {"password": "seven green boats"})).status == 204
    assert (await lee.ask("PUT", "/users/gimmina/password", {"password": "seven green boats"}))[0] == 404


async def test_a_sheet_has_new_links_for_those_the_teacher_looks_after_and_for_no_other(
    site: Site, kim: Learner, mina: Learner, lee: Learner
) -> None:
    made = await a_class(kim, "mina")  # added: her account is not theirs to open
    await send(kim, made["id"], "Jun,jun\nBo,bo\n")
    status, first = await kim.ask("POST", f"/classes/{made['id']}/login-links")
    assert (status, [slip["name"] for slip in first["items"]]) == (201, ["bo", "jun"])
    _, second = await kim.ask("POST", f"/classes/{made['id']}/login-links")
    for made_at, works in ((first, 410), (second, 303)):
        async with site.client() as browser:
            url = made_at["items"][0]["url"].removeprefix(site.url)
            async with browser.post(url, allow_redirects=False) as answer:
                assert answer.status == works
    assert (await kim.ask("POST", "/users/mina/login-links"))[0] == 404
    assert (await lee.ask("POST", f"/classes/{made['id']}/login-links"))[0] == 404
    await site.services.people.change_user(operator(), "jun", role=Role.ADMIN, active=None)
    _, third = await kim.ask("POST", f"/classes/{made['id']}/login-links")
    assert [slip["name"] for slip in third["items"]] == ["bo"]  # an admin's account is nobody's to open


async def test_numbers_of_a_class_register_say_who_it_is_in_that_class_alone(kim: Learner) -> None:
    """Every class has a number 1: they were added to each other's classes."""
    first, second = await a_class(kim), await a_class(kim, title="3-2")
    await send(kim, first["id"], "번호,이름\n1,김민아\n2,이준\n")
    said = await preview(kim, second["id"], "번호,이름\n1,박서연\n2,최도윤\n")
    assert [(line["outcome"], line["id"]) for line in said["lines"]] == [("new", "1"), ("new", "2")]
    said = await preview(kim, first["id"], "번호,이름\n2,이준호\n")
    assert [(line["outcome"], line["name"]) for line in said["lines"]] == [("there", "ijun")]
    both = await preview(kim, second["id"], "번호,학번,이름\n1,30201,박서연\n")
    assert [line["id"] for line in both["lines"]] == ["30201"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("이름,성명,학번\n가,나,7\n", "two columns are headed as `display_name`"),
        ('"Kim Mina,mina\nJun,jun\nBo,bo\n', "cannot be read"),
        ('"Kim" Mina,mina\n', "line 1 cannot be read"),
        ("Jürgen,jurgen\n".encode("cp1252"), "CSV UTF-8"),
        ("".join(f"L{n},l{n}\n" for n in range(10_000)), "at most 500 people"),
    ],
)
async def test_a_list_that_would_be_misread_is_refused_with_what_is_wrong(
    kim: Learner, raw: bytes | str, said: str
) -> None:
    made = await a_class(kim)
    status, problem = await send(kim, made["id"], raw)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert said in problem["errors"][0]["message"]
    assert await learners(kim, made["id"]) == {}


@pytest.mark.parametrize("at", [2, 300])
def test_a_stray_zero_is_left_out_and_makes_no_other_encoding_of_a_list(at: int) -> None:
    text = "".join(f"Mina {n},mina{n},{n}\n" for n in range(30)).encode()
    read = roster.read(text[:at] + b"\0" + text[at:] + b"\n" * ((len(text) + 1) % 2))
    assert (read.encoding, read.lines[0].display_name, len(read.lines)) == ("UTF-8", "Mina 0", 30)


async def test_a_list_with_numbers_finds_those_who_came_without_one(kim: Learner, mina: Learner) -> None:
    """By a list of names, by a code, or by hand: they would all have got a second account."""
    made = await a_class(kim, "mina")
    await mina.ask("PATCH", "/users/mina", {"display_name": "김민아"})
    await send(kim, made["id"], "이준\n")
    numbered = "이름,학번\n김민아,30201\n이준,30202\n박서연,30203\n"
    said = await preview(kim, made["id"], numbered)
    assert [(line["outcome"], line["name"]) for line in said["lines"]] == [
        ("there", "mina"),
        ("there", "ijun"),
        ("new", "bakseoyeon"),
    ]
    assert (await send(kim, made["id"], numbered, digest=said["digest"]))[0] == 200
    found = {name: member["school_id"] for name, member in (await learners(kim, made["id"])).items()}
    assert found == {"mina": "30201", "ijun": "30202", "bakseoyeon": "30203"}
    await mina.ask("PATCH", "/users/mina", {"display_name": "Mina"})  # from now on it is the number that says who it is
    assert (await preview(kim, made["id"], numbered))["counts"]["there"] == 3
