"""Logging in with a passkey; and every answer that must not log anybody in."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import redis.asyncio

from codehub.command import operator
from codehub.errors import UnavailableError
from codehub.passkeys.challenges import Challenges
from codehub.passkeys.model import Purpose
from codehub.settings import Settings
from tests.auth.helpers import deactivate, entries
from tests.passkeys.authenticator import PRESENT, VERIFIED, Authenticator, decode, encode
from tests.passkeys.conftest import Visitor, logged_in, stranger
from tests.passkeys.test_keeping import give_password
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with


@pytest.fixture
async def passkey(mina: Visitor) -> Authenticator:
    """One of mina's."""
    made = Authenticator()
    await mina.add(made, label="Phone")
    return made


async def refused(visitor: Visitor, passkey: Authenticator) -> tuple[int, str]:
    status, problem = await visitor.log_in(passkey)
    assert await visitor.who() is None
    return status, problem["code"]


async def test_a_passkey_logs_in_without_a_name(site: Site, passkey: Authenticator, visitor: Visitor) -> None:
    question = await visitor.login_question()
    assert question["options"]["allowCredentials"] == []
    assert question["options"]["userVerification"] == "required"
    credential = passkey.get(question)
    assert await visitor.ask("POST", "/passkeys/login", {"credential": credential}) == (200, {"name": "mina"})
    assert await visitor.who() == "mina"
    entry = (await entries(site.services, "login"))[0]
    assert (entry.subject, entry.data["way"], entry.address) == ("mina", "passkey", "127.0.0.1")
    assert (await replace(visitor, name="mina").passkeys())[0]["last_used_at"]


async def test_a_passkey_goes_on_working(site: Site, passkey: Authenticator) -> None:
    for _ in range(3):
        async with stranger(site) as visitor:
            assert (await visitor.log_in(passkey))[0] == 200


async def test_one_that_does_not_count_works_again_and_again(site: Site, mina: Visitor) -> None:
    passkey = Authenticator(counts=False)
    await mina.add(passkey)
    for _ in range(2):
        async with stranger(site) as visitor:
            assert (await visitor.log_in(passkey))[0] == 200


async def test_each_of_several_logs_in(site: Site, mina: Visitor) -> None:
    for passkey in [Authenticator() for _ in range(3)]:
        await mina.add(passkey)
        async with stranger(site) as visitor:
            assert (await visitor.log_in(passkey))[0] == 200


async def test_an_unknown_passkey_is_refused(passkey: Authenticator, visitor: Visitor) -> None:
    assert await refused(visitor, Authenticator(user_handle=passkey.user_handle)) == (401, "PASSKEY_REFUSED")


async def test_a_deactivated_person_is_refused_in_the_words_for_an_unknown_one(
    site: Site, passkey: Authenticator, visitor: Visitor
) -> None:
    unknown = await visitor.log_in(Authenticator())
    await deactivate(site.services, "mina")
    assert await visitor.log_in(passkey) == unknown
    await site.services.people.change_user(operator(), "mina", role=None, active=True)
    assert (await visitor.log_in(passkey))[0] == 200


async def test_a_removed_passkey_is_refused(
    site: Site, mina: Visitor, passkey: Authenticator, visitor: Visitor
) -> None:
    await give_password(site, "mina")
    made = (await mina.passkeys())[0]
    question = await visitor.login_question()  # asked before it was removed
    assert (await mina.ask("DELETE", f"/users/mina/passkeys/{made['id']}"))[0] == 204
    status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": passkey.get(question)})
    assert (status, problem["code"]) == (401, "PASSKEY_REFUSED")


@pytest.mark.parametrize(
    "origin",
    [
        "http://ws1.localhost:8000",  # a workspace's
        "http://localhost:3000",  # another program on this machine
        "http://127.0.0.1:8000",
        "https://localhost:8000",
        "http://localhost",
        "http://localhost:8000.evil.example",
        "http://localhost:8000/",
        "HTTP://LOCALHOST:8000",
        "null",
        "",
        None,
        ["http://localhost:8000"],
    ],
)
async def test_another_origin_is_refused(passkey: Authenticator, visitor: Visitor, origin: Any) -> None:
    passkey.origin = origin
    assert await refused(visitor, passkey) == (403, "PASSKEY_ORIGIN")


@pytest.mark.parametrize("host", ["ws1.localhost:8000", "localhost:3000"])
async def test_a_host_cannot_be_claimed_to_fit_the_origin(site: Site, passkey: Authenticator, host: str) -> None:
    passkey.origin = f"http://{host}"
    async with stranger(site) as asker, stranger(site, Host=host) as claimer:
        credential = passkey.get(await asker.login_question())
        status, _ = await claimer.ask("POST", "/passkeys/login", {"credential": credential})
        assert status in {403, 409}
        assert await claimer.who() is None


async def test_a_workspaces_origin_registers_none(mina: Visitor) -> None:
    status, problem = await mina.register(Authenticator(origin="http://ws1.localhost:8000"))
    assert (status, problem["code"]) == (403, "PASSKEY_ORIGIN")
    assert await mina.passkeys() == []


@pytest.mark.parametrize("name", ["ws1.localhost", "example.org", ""])
async def test_a_passkey_of_another_name_is_refused(passkey: Authenticator, visitor: Visitor, name: str) -> None:
    passkey.name = name
    assert await refused(visitor, passkey) == (403, "PASSKEY_ORIGIN")


async def test_a_frame_of_another_site_is_refused(passkey: Authenticator, visitor: Visitor) -> None:
    passkey.client = {"crossOrigin": True, "topOrigin": "https://evil.example"}
    assert await refused(visitor, passkey) == (403, "PASSKEY_ORIGIN")


@pytest.mark.parametrize("flags", [0, PRESENT, VERIFIED])
async def test_who_was_not_there_or_did_not_unlock_it_is_refused(
    passkey: Authenticator, visitor: Visitor, flags: int
) -> None:
    passkey.flags = flags
    assert await refused(visitor, passkey) == (401, "PASSKEY_REFUSED")


async def test_another_key_is_refused_and_blocks_nothing(site: Site, passkey: Authenticator, visitor: Visitor) -> None:
    """Nobody without the key can make it look copied: the counter counts once the signature is good."""
    assert (await visitor.log_in(passkey))[0] == 200
    async with stranger(site) as forger:
        forged = Authenticator(credential_id=passkey.credential_id, user_handle=passkey.user_handle, counts=False)
        assert await refused(forger, forged) == (401, "PASSKEY_REFUSED")
        assert (await forger.log_in(passkey))[0] == 200
    assert await entries(site.services, "passkey.block") == []


async def test_an_answer_for_another_person_is_refused(site: Site, passkey: Authenticator, visitor: Visitor) -> None:
    async with logged_in(site, "jun") as jun:
        other = Authenticator()
        await jun.add(other)
    for handle in (other.user_handle, b"", b"\xff\xfe"):
        passkey.user_handle = handle
        assert (await refused(visitor, passkey))[0] in {400, 401}


async def test_an_answer_works_once(site: Site, passkey: Authenticator, visitor: Visitor) -> None:
    credential = passkey.get(await visitor.login_question())
    for expected in ((200, None), (409, "PASSKEY_CHALLENGE"), (409, "PASSKEY_CHALLENGE")):
        status, answer = await visitor.ask("POST", "/passkeys/login", {"credential": credential})
        assert (status, answer.get("code")) == expected
    assert len([e for e in await entries(site.services, "login") if e.data["way"] == "passkey"]) == 1
    assert await entries(site.services, "passkey.block") == []  # a double click is no copy


async def test_a_question_works_once_also_with_another_signature(passkey: Authenticator, visitor: Visitor) -> None:
    question = await visitor.login_question()
    statuses = [
        (await visitor.ask("POST", "/passkeys/login", {"credential": passkey.get(question)}))[0] for _ in range(2)
    ]
    assert statuses == [200, 409]


async def test_of_twenty_with_one_answer_at_once_exactly_one_gets_in(passkey: Authenticator, visitor: Visitor) -> None:
    credential = passkey.get(await visitor.login_question())
    answers = await asyncio.gather(
        *[visitor.ask("POST", "/passkeys/login", {"credential": credential}) for _ in range(20)]
    )
    assert sorted(status for status, _ in answers) == [200] + [409] * 19


async def test_an_answer_of_another_browser_is_refused(site: Site, passkey: Authenticator, visitor: Visitor) -> None:
    credential = passkey.get(await visitor.login_question())
    async with stranger(site) as thief:
        for asks_too in (False, True):
            if asks_too:
                await thief.login_question()
            status, problem = await thief.ask("POST", "/passkeys/login", {"credential": credential})
            assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")
        assert await thief.who() is None
    assert (await visitor.ask("POST", "/passkeys/login", {"credential": credential}))[0] == 200


async def test_two_tabs_of_one_browser_can_both_ask(passkey: Authenticator, visitor: Visitor) -> None:
    first, _second = await visitor.login_question(), await visitor.login_question()
    assert (await visitor.ask("POST", "/passkeys/login", {"credential": passkey.get(first)}))[0] == 200


async def test_a_question_is_good_for_minutes(passkey: Authenticator, visitor: Visitor, clock: ManualClock) -> None:
    early, late = await visitor.login_question(), await visitor.login_question()
    await clock.advance(early["expires_in_seconds"] - 1)
    assert (await visitor.ask("POST", "/passkeys/login", {"credential": passkey.get(early)}))[0] == 200
    await clock.advance(1)
    status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": passkey.get(late)})
    assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")


async def test_a_question_for_the_one_is_none_for_the_other(mina: Visitor, passkey: Authenticator) -> None:
    asked_to_register, asked_to_log_in = await mina.question(), await mina.login_question()
    status, problem = await mina.ask("POST", "/passkeys/login", {"credential": passkey.get(asked_to_register)})
    assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")
    asked_to_register["options"]["challenge"] = asked_to_log_in["options"]["challenge"]
    credential = Authenticator().create(asked_to_register)
    status, problem = await mina.ask("POST", "/users/mina/passkeys", {"credential": credential})
    assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")


async def test_a_question_for_another_person_or_session_adds_nothing(site: Site, mina: Visitor) -> None:
    question = await mina.question()
    async with logged_in(site, "jun") as jun, logged_in(site, "mina") as elsewhere:
        for visitor in (jun, elsewhere):
            credential = Authenticator().create(question)
            status, problem = await visitor.ask("POST", f"/users/{visitor.name}/passkeys", {"credential": credential})
            assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")


async def test_a_registration_is_not_repeated(mina: Visitor) -> None:
    question = await mina.question()
    statuses = [
        (await mina.ask("POST", "/users/mina/passkeys", {"credential": Authenticator().create(question)}))[0]
        for _ in range(2)
    ]
    assert statuses == [201, 409]


@pytest.mark.parametrize("challenge", ["", "AAAA", encode(b"login.x.y.z"), encode(b"\xff" * 40), encode(b"." * 9)])
async def test_a_question_that_we_did_not_ask_is_refused(
    passkey: Authenticator, visitor: Visitor, challenge: str
) -> None:
    await visitor.login_question()
    credential = passkey.get({"options": {"challenge": challenge}})
    status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": credential})
    assert (status, problem["code"]) == (409, "PASSKEY_CHALLENGE")


async def test_a_question_that_was_changed_is_refused(passkey: Authenticator, visitor: Visitor) -> None:
    question = await visitor.login_question()
    for n in (0, 10, 45, 60, -1):
        changed = bytearray(decode(question["options"]["challenge"]))
        changed[n] ^= 1
        credential = passkey.get({"options": {"challenge": encode(bytes(changed))}})
        assert (await visitor.ask("POST", "/passkeys/login", {"credential": credential}))[0] == 409


async def test_a_counter_that_goes_back_blocks_the_passkey(
    site: Site, mina: Visitor, passkey: Authenticator, visitor: Visitor
) -> None:
    passkey.count = 7
    assert (await visitor.log_in(passkey))[0] == 200
    copy = replace(passkey, count=3)
    async with stranger(site) as thief:
        assert await refused(thief, copy) == (401, "PASSKEY_BLOCKED")
        copy.count = 100  # whoever goes on counting is not believed any more
        assert await refused(thief, copy) == (401, "PASSKEY_BLOCKED")
        assert await refused(thief, passkey) == (401, "PASSKEY_BLOCKED")
    shown = (await mina.passkeys())[0]
    assert shown["blocked_at"]
    blocks = await entries(site.services, "passkey.block")
    assert [(e.actor, e.subject, e.data["label"]) for e in blocks] == [("mina", "mina", "Phone")]
    # It is no way in, so it can go, although nothing else is there.
    assert (await mina.ask("DELETE", f"/users/mina/passkeys/{shown['id']}"))[0] == 204
    await mina.add(passkey)


async def test_a_blocked_passkey_does_not_count_as_a_way_in(site: Site, mina: Visitor, passkey: Authenticator) -> None:
    second = Authenticator()
    good = await mina.add(second)
    passkey.count = 7
    for count in (7, 3):
        passkey.count = count
        async with stranger(site) as visitor:
            await visitor.log_in(passkey)
    status, problem = await mina.ask("DELETE", f"/users/mina/passkeys/{good['id']}")
    assert (status, problem["code"]) == (409, "LAST_WAY_IN")


async def test_another_persons_session_ends_only_where_it_is_named(
    site: Site, passkey: Authenticator, mina: Visitor
) -> None:
    async with logged_in(site, "jun") as jun:
        status, problem = await jun.log_in(passkey)
        assert (status, problem["code"]) == (409, "LOGGED_IN_AS_ANOTHER")
        assert await jun.who() == "jun"
        assert (await jun.log_in(passkey, instead_of="jun"))[0] == 200
        assert await jun.who() == "mina"
    assert (await mina.log_in(passkey))[0] == 200  # their own, anew


async def test_the_session_before_ends(site: Site, passkey: Authenticator, mina: Visitor) -> None:
    cookie = next(c.value for c in mina.client.cookie_jar if c.key == "codehub")
    assert (await mina.log_in(passkey))[0] == 200
    async with stranger(site, Cookie=f"codehub={cookie}") as old:
        assert await old.who() is None


def broken(credential: Any) -> list[Any]:
    """Answers that are none, each in its own way."""
    response = credential["response"]
    changed = [{**credential, "response": {**response, key: value}} for key in response for value in ("", "A", "=", 7)]
    nested = encode(b"[" * 5000)
    binary = response.keys() & {"attestationObject", "authenticatorData"}
    said = (nested, encode(b"[]"), encode(b'{"type":1,"challenge":1,"origin":1}'), encode(b"\xff"))
    return [
        *changed,
        *[{**credential, "response": {**response, key: encode(b"\x81" * 5000)}} for key in binary],
        *[{**credential, "response": {**response, "clientDataJSON": text}} for text in said],
        {},
        [],
        "x",
        None,
        {**credential, "id": "AAAA"},
        {**credential, "rawId": "****"},
        {**credential, "type": "password"},
        {**credential, "response": {}},
    ]


async def test_what_is_no_answer_is_refused_clearly(mina: Visitor, passkey: Authenticator, visitor: Visitor) -> None:
    for credential in broken(passkey.get(await visitor.login_question())):
        status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": credential})
        assert status in {400, 401, 403, 409}, credential
        assert problem["code"] != "INTERNAL"
    for credential in broken(Authenticator().create(await mina.question())):
        status, problem = await mina.ask("POST", "/users/mina/passkeys", {"credential": credential})
        assert status in {400, 401, 403, 409} or (status == 201 and "transports" in str(credential)), credential


async def test_a_cookie_that_is_not_ours_is_replaced(site: Site) -> None:
    async with (
        stranger(site, Cookie='codehub-passkey="a\\012b; x"') as visitor,
        visitor.client.post("/api/v1/passkeys/question") as answer,
    ):
        assert answer.status == 200
        cookie = answer.cookies["codehub-passkey"]
        assert (len(cookie.value), cookie["samesite"], cookie["httponly"]) == (43, "Strict", True)


async def test_where_redis_does_not_answer_nobody_gets_in(clock: ManualClock) -> None:
    async with redis.asyncio.Redis(unix_socket_path="/nonexistent/redis.sock") as away:
        challenges = Challenges(away, clock, "a-key-of-this-test", 60)
        with pytest.raises(UnavailableError):
            await challenges.use(challenges.new(Purpose.LOGIN, "a browser"))


@pytest.mark.parametrize("host", ["192.168.0.5:8000", "127.0.0.1:8000"])
async def test_an_address_is_told_where_passkeys_work(site: Site, host: str) -> None:
    async with stranger(site, Host=host) as visitor:
        status, found = await visitor.ask("POST", "/passkeys/question")
        if host.startswith("127."):  # the page there says to open localhost; its answers would be of another origin
            assert (status, found["options"]["rpId"]) == (200, "localhost")
        else:
            assert (status, found["code"]) == (409, "PASSKEYS_UNAVAILABLE")
            assert "CODEHUB_PUBLIC_URL" in found["detail"]


async def test_behind_tls_the_name_is_the_public_urls(settings: Settings, clock: ManualClock) -> None:
    async with (
        serving_with(settings, clock, public_url="https://lab.example.org") as site,
        stranger(site, Host="lab.example.org") as visitor,
    ):
        question = await visitor.login_question()
        assert question["options"]["rpId"] == "lab.example.org"
        async with visitor.client.post("/api/v1/passkeys/question") as answer:
            cookie, question = answer.headers["set-cookie"], await answer.json()
        # Sent by hand: this client does not speak TLS, and would keep it back.
        visitor.client.headers["Cookie"] = cookie.partition(";")[0]
        assert cookie.startswith("__Host-codehub-passkey=")
        assert cookie.endswith("; Secure")
        wrong = Authenticator(name="lab.example.org", origin="https://ws1.lab.example.org")
        credential = wrong.get(question)
        status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": credential})
        assert (status, problem["code"]) == (403, "PASSKEY_ORIGIN")
        right = Authenticator(name="lab.example.org", origin="https://lab.example.org")
        status, problem = await visitor.ask("POST", "/passkeys/login", {"credential": right.get(question)})
        assert (status, problem["code"]) == (401, "PASSKEY_REFUSED")  # of no account, but from the right place
