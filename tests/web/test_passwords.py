"""Logging in with a password, setting and removing one, through HTTP: rules, refusals, limits, and who may do it."""

import asyncio
import contextlib
import time
import unicodedata
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from argon2 import PasswordHasher

from codehub.auth import hashing, tries
from codehub.command import operator
from codehub.db.redis import open_redis
from codehub.errors import TooManyTriesError
from codehub.policy.model import Role, Scope
from codehub.settings import Settings
from tests.auth.helpers import deactivate, entries, everything_stored
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with

LAMP = "a quiet lamp by the river"
BOAT = "a slow boat on the water"
HOME, SCHOOL = "198.51.100.9", "203.0.113.5"


@pytest.fixture
async def site(settings: Settings, clock: ManualClock, services: Any) -> AsyncIterator[Site]:
    """Believes what clients say of their address, as behind a proxy of our own."""
    del services  # the database is made, and its tables
    async with serving_with(settings, clock, trusted_proxies=(ip_network("127.0.0.0/8"),)) as site:
        yield site


@pytest.fixture(autouse=True)
async def mina(site: Site) -> None:
    await add(site, "mina", LAMP)


async def add(site: Site, name: str, password: str | None = None, role: Role = Role.LEARNER) -> None:
    async with site.admin() as admin:
        body = {"name": name, "role": role, **({"password": password} if password else {})}
        async with admin.post("/api/v1/users", json=body) as answer:
            assert answer.status == 201, await answer.text()
            assert "password" not in await answer.text()


async def log_in(client: aiohttp.ClientSession, name: str, password: str, **more: str) -> tuple[int, dict[str, Any]]:
    async with client.post("/api/v1/login", json={"name": name, "password": password, **more}) as answer:
        return answer.status, await answer.json()


async def change(client: aiohttp.ClientSession, name: str, **body: Any) -> tuple[int, str]:
    async with client.put(f"/api/v1/users/{name}/password", json=body) as answer:
        return answer.status, (await answer.json())["code"] if answer.status != 204 else ""


async def me(client: aiohttp.ClientSession) -> str | None:
    async with client.get("/api/v1/me") as answer:
        return (await answer.json())["name"] if answer.status == 200 else None


@contextlib.asynccontextmanager
async def at(site: Site, address: str, **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.client(**{"X-Forwarded-For": address, **headers}) as client:
        yield client


@contextlib.asynccontextmanager
async def logged_in(site: Site, name: str = "mina", password: str = LAMP) -> AsyncIterator[aiohttp.ClientSession]:
    async with at(site, HOME) as client:
        assert (await log_in(client, name, password))[0] == 200
        yield client


# --- logging in -----------------------------------------------------------------------------------------------------


async def test_a_name_and_its_password_log_in_with_a_cookie_as_safe_as_a_links(site: Site) -> None:
    async with at(site, HOME) as browser:
        async with browser.post("/api/v1/login", json={"name": "Mina ", "password": LAMP}) as answer:
            assert (answer.status, await answer.json()) == (200, {"name": "mina"})
            assert {"HttpOnly", "SameSite=Lax"} <= set(answer.headers["set-cookie"].split("; "))
        assert await me(browser) == "mina"
    (entry, *_) = await entries(site.services, "login")
    assert (entry.subject, entry.data["way"]) == ("mina", "password")


async def test_korean_that_a_keyboard_takes_apart_is_the_same_password(site: Site) -> None:
    whole = "기차는여덟시에떠나네"
    await add(site, "jun", unicodedata.normalize("NFD", whole))
    for typed in (whole, unicodedata.normalize("NFD", whole)):
        async with at(site, HOME) as browser:
            assert (await log_in(browser, "jun", typed))[0] == 200


async def test_whatever_is_wrong_is_said_in_the_same_words_after_the_same_work(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(site, "linked")
    await add(site, "gone", LAMP)
    await deactivate(site.services, "gone")
    compared: list[str] = []
    real = hashing._matches

    def matches(hashed: str, password: str) -> bool:
        compared.append(hashed)
        return real(hashed, password)

    monkeypatch.setattr(hashing, "_matches", matches)
    said = set()
    tried = [("mina", BOAT), ("nobody-here", LAMP), ("linked", LAMP), ("gone", LAMP), ("no name!", LAMP), ("x\0", LAMP)]
    for name, password in tried:
        async with (
            at(site, HOME) as client,
            client.post("/api/v1/login", json={"name": name, "password": password}) as answer,
        ):
            headers = {k for k in answer.headers if k.lower() not in {"date", "x-request-id"}}
            said.add((answer.status, answer.headers["content-length"], frozenset(headers), await answer.text()))
    assert len(said) == 1
    assert next(iter(said))[0] == 401
    assert "WRONG_CREDENTIALS" in next(iter(said))[3]
    assert len(compared) == len(tried)
    assert len({hashed.rsplit("$", 2)[0] for hashed in compared}) == 1  # of one cost


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "mina"},
        {"password": LAMP},
        {"name": "mina", "password": ""},
        {"name": "", "password": LAMP},
        {"name": "mina", "password": 1234567890},
        {"name": "mina", "password": "x" * 201},
        {"name": ["mina"], "password": LAMP},
        {"name": "mina", "password": LAMP, "more": 1},
    ],
)
async def test_what_is_no_login_is_refused_without_a_try_and_without_repeating_it(
    site: Site, body: dict[str, Any]
) -> None:
    async with at(site, HOME) as client, client.post("/api/v1/login", json=body) as answer:
        text = await answer.text()
        assert answer.status == 400
        assert LAMP not in text
        assert "x" * 20 not in text


async def test_a_password_changed_between_looking_and_logging_in_lets_nobody_in(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = hashing.Hashing.matches

    async def matches(self: hashing.Hashing, hashed: str | None, password: str, network: str) -> bool:
        good = await real(self, hashed, password, network)
        monkeypatch.undo()
        await site.services.passwords.change(operator(), "mina", BOAT, None)
        return good

    monkeypatch.setattr(hashing.Hashing, "matches", matches)
    async with at(site, HOME) as client:
        assert (await log_in(client, "mina", LAMP))[1]["code"] == "WRONG_CREDENTIALS"
        assert (await log_in(client, "mina", BOAT))[0] == 200


async def test_a_hash_of_an_earlier_cost_is_replaced_when_its_person_logs_in(site: Site) -> None:
    async with site.services.database.transaction() as c:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(LAMP)
        await c.execute("UPDATE passwords SET hash = $1", cheap)
    for _ in range(2):
        async with logged_in(site) as client:
            assert await me(client) == "mina"
    async with site.services.database.connection() as c:
        (record,) = await c.fetch("SELECT hash FROM passwords")
    assert not site.services.passwords._hashing.is_outdated(record["hash"])


async def test_another_persons_session_is_not_replaced_unasked(site: Site) -> None:
    await add(site, "jun", BOAT)
    async with logged_in(site) as browser:
        status, problem = await log_in(browser, "jun", BOAT)
        assert (status, problem["code"]) == (409, "LOGGED_IN_AS_ANOTHER")
        assert await me(browser) == "mina"
        before = next(iter(browser.cookie_jar)).value
        assert (await log_in(browser, "jun", BOAT, instead_of="mina"))[0] == 200
        assert await me(browser) == "jun"
        assert (await log_in(browser, "jun", BOAT))[0] == 200  # the same person once more
    async with site.client(Cookie=f"codehub={before}") as thief:
        assert await me(thief) is None


async def test_a_page_of_another_site_logs_nobody_in(site: Site) -> None:
    async with at(site, HOME, Origin="http://evil.example") as browser:
        assert (await log_in(browser, "mina", LAMP))[0] == 403
        async with browser.post("/login", data={"name": "mina", "password": LAMP}) as answer:
            assert answer.status == 403


# --- limits ---------------------------------------------------------------------------------------------------------


async def test_wrong_tries_slow_a_person_down_from_that_network_and_nowhere_else(site: Site) -> None:
    async with at(site, SCHOOL) as guesser:
        for _ in range(tries.QUICK.most):
            assert (await log_in(guesser, "mina", BOAT))[0] == 401
        async with guesser.post("/api/v1/login", json={"name": "mina", "password": LAMP}) as answer:
            assert (answer.status, (await answer.json())["code"]) == (429, "TOO_MANY_TRIES")
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert (await log_in(guesser, "somebody", BOAT))[0] == 401  # others are not slowed down
    async with logged_in(site) as owner:
        assert await me(owner) == "mina"


async def test_an_unknown_name_is_slowed_down_as_a_known_one_is(site: Site) -> None:
    async with at(site, SCHOOL) as guesser:
        for name in ("mina", "nobody-here"):
            said = [(await log_in(guesser, name, BOAT))[0] for _ in range(tries.QUICK.most + 1)]
            assert said == [401] * tries.QUICK.most + [429], name


async def test_one_may_try_again_after_a_while_and_a_right_one_forgets_the_wrong_ones(
    site: Site, clock: ManualClock
) -> None:
    async with at(site, SCHOOL) as client:
        for _ in range(tries.QUICK.most):
            await log_in(client, "mina", BOAT)
        assert (await log_in(client, "mina", LAMP))[0] == 429
        await clock.advance(60)
        assert (await log_in(client, "mina", LAMP))[0] == 200
        said = [(await log_in(client, "mina", BOAT))[0] for _ in range(tries.QUICK.most)]
        assert said == [401] * tries.QUICK.most


async def test_guesses_over_days_are_bounded_by_the_day(site: Site, clock: ManualClock) -> None:
    count = site.services.passwords._tries
    taken = 0
    for _ in range(24 * 60):  # a guess a minute, for a day
        await clock.advance(60)
        with contextlib.suppress(TooManyTriesError):
            await count.begin("mina", SCHOOL)
            taken += 1
    assert taken <= 2 * tries.DAY.most


async def test_one_password_at_many_names_is_slowed_down_for_its_network(site: Site) -> None:
    count = site.services.passwords._tries
    for n in range(tries.NETWORK.most):
        await count.begin(f"name-{n}", SCHOOL)
    with pytest.raises(TooManyTriesError):
        await count.begin("one-more", SCHOOL)
    await count.begin("one-more", HOME)


async def test_without_redis_people_log_in_and_guesses_stay_bounded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = site.services.passwords._tries

    away = open_redis("redis://127.0.0.1:1")
    monkeypatch.setattr(count, "_redis", away)
    async with at(site, SCHOOL) as guesser:
        said = [(await log_in(guesser, "mina", BOAT))[0] for _ in range(tries.QUICK.most + 2)]
        assert said == [401] * tries.QUICK.most + [429] * 2
    async with logged_in(site) as owner:
        assert await me(owner) == "mina"
    kept = tries.LocalBuckets(most=10)
    for n in range(1000):
        kept.take({str(n): tries.QUICK}, 0)
    assert len(kept) == 10
    await away.aclose()


async def test_what_is_counted_names_nobody_and_goes_by_itself(site: Site) -> None:
    async with at(site, SCHOOL) as client:
        await log_in(client, LAMP, "typed into the wrong field")
    keys = [key async for key in site.services.redis.scan_iter("codehub:tries:*")]
    assert len(keys) == 3
    for key in keys:
        assert b"lamp" not in key
        assert await site.services.redis.pttl(key) > 0
    async with logged_in(site):
        pass
    keys = [key async for key in site.services.redis.scan_iter("codehub:tries:*")]
    assert len(keys) == 3  # a right one leaves nothing


@pytest.mark.parametrize("guesses", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_guesses_from_one_address_go_unnoticed_by_their_person_elsewhere(site: Site, guesses: int) -> None:
    """Each guess another; the person logs in from elsewhere meanwhile, again and again."""
    done = asyncio.Event()

    async def guesser(part: range) -> list[int]:
        async with at(site, SCHOOL) as client:
            return [(await log_in(client, "mina", f"guess number {n}"))[0] for n in part]

    async def owner() -> int:
        times = 0
        while not done.is_set():
            async with at(site, HOME) as client:
                assert (await log_in(client, "mina", LAMP))[0] == 200
                assert await me(client) == "mina"
            times += 1
            await asyncio.sleep(0)
        return times

    coming = asyncio.create_task(owner())
    said = [s for part in await asyncio.gather(*(guesser(range(n, guesses, 10)) for n in range(10))) for s in part]
    done.set()
    assert await coming >= 1
    assert len(said) == guesses
    assert set(said) == {401, 429}
    assert said.count(401) == tries.QUICK.most


async def seconds_of(client: aiohttp.ClientSession, name: str, address: str) -> float:
    begun = time.perf_counter()
    body = {"name": name, "password": BOAT + "!"}
    async with client.post("/api/v1/login", json=body, headers={"X-Forwarded-For": address}) as answer:
        assert answer.status == 401
        await answer.read()
    return time.perf_counter() - begun


@pytest.mark.soak
async def test_names_cannot_be_told_apart_by_how_long_the_answer_takes(site: Site) -> None:
    """In turn, each from a network of its own: how often does one kind of name take longer than another?"""
    for n in range(10):
        await add(site, f"known-{n}", LAMP)
        await add(site, f"linked-{n}")
        await add(site, f"gone-{n}", LAMP)
        await deactivate(site.services, f"gone-{n}")
    kinds: dict[str, list[float]] = {"known": [], "linked": [], "gone": [], "nobody": []}
    async with site.client() as client:
        for n in range(400):
            for k, (kind, took) in enumerate(kinds.items()):
                took.append(await seconds_of(client, f"{kind}-{n % 10}", f"10.{k}.{n // 250}.{n % 250}"))
    for kind in ("linked", "gone", "nobody"):
        longer = sum(a > b for a in kinds["known"] for b in kinds[kind]) / len(kinds["known"]) ** 2
        assert 0.42 < longer < 0.58, (kind, longer)


# --- changing -------------------------------------------------------------------------------------------------------


async def test_a_person_changes_their_password_with_the_current_one_and_stays_logged_in_here_alone(site: Site) -> None:
    async with logged_in(site) as here, logged_in(site) as elsewhere:
        assert await change(here, "mina", password=BOAT) == (400, "INVALID_REQUEST")
        assert await change(here, "mina", password=BOAT, current_password="not this one") == (403, "WRONG_PASSWORD")
        assert await me(elsewhere) == "mina"
        assert await change(here, "mina", password=BOAT, current_password=LAMP) == (204, "")
        assert (await me(here), await me(elsewhere)) == ("mina", None)
        assert (await log_in(elsewhere, "mina", LAMP))[0] == 401
        assert (await log_in(elsewhere, "mina", BOAT))[0] == 200
    (entry,) = await entries(site.services, "password.change")
    assert (entry.actor, entry.subject) == ("mina", "mina")


async def test_a_wrong_current_password_counts_as_a_try(site: Site) -> None:
    async with logged_in(site) as here:
        for _ in range(tries.QUICK.most):
            assert (await change(here, "mina", password=BOAT, current_password="not this one"))[0] == 403
        assert await change(here, "mina", password=BOAT, current_password=LAMP) == (429, "TOO_MANY_TRIES")


async def test_a_person_without_one_sets_it_and_an_admin_sets_anybodys(site: Site) -> None:
    await add(site, "jun")
    async with site.browser("jun") as jun, site.admin() as admin:
        assert await change(jun, "jun", password=BOAT) == (204, "")
        assert await me(jun) == "jun"
        assert await change(admin, "jun", password=LAMP) == (204, "")
        assert await me(jun) is None  # out everywhere: it is not known who had the old one
        assert await change(admin, "nobody-here", password=LAMP) == (404, "NOT_FOUND")
        await deactivate(site.services, "jun")
        assert await change(admin, "jun", password=LAMP) == (409, "USER_DEACTIVATED")


async def test_another_persons_password_is_not_there_to_change(site: Site) -> None:
    await add(site, "jun", BOAT)
    await add(site, "kim", BOAT, Role.TEACHER)
    for name in ("jun", "kim"):
        async with logged_in(site, name, BOAT) as other:
            assert await change(other, "mina", password=BOAT) == (404, "NOT_FOUND")
            async with other.delete("/api/v1/users/mina/password") as answer:
                assert answer.status == 404
    async with site.client() as nobody:
        assert (await change(nobody, "mina", password=BOAT))[0] == 401


async def test_a_token_that_may_do_less_than_its_person_gives_them_no_way_in(site: Site) -> None:
    await add(site, "boss", None, Role.ADMIN)
    token = await site.token("boss", scopes=frozenset({Scope.READ, Scope.WRITE}))
    async with site.client(token) as program:
        assert await change(program, "boss", password=LAMP) == (403, "FORBIDDEN")
    async with site.client(await site.token("boss")) as program:
        assert await change(program, "boss", password=LAMP) == (204, "")


async def test_a_teacher_resets_the_passwords_of_accounts_that_they_look_after(site: Site) -> None:
    await add(site, "kim", BOAT, Role.TEACHER)
    await add(site, "lee", BOAT, Role.TEACHER)
    await add(site, "visitor", LAMP)
    async with logged_in(site, "kim", BOAT) as kim, logged_in(site, "lee", BOAT) as lee:
        async with kim.post("/api/v1/classes", json={"title": "Sea"}) as answer:
            class_id = (await answer.json())["id"]
        for name in ("mina", "visitor"):
            async with kim.post(
                f"/api/v1/classes/{class_id}/members", json={"name": name, "role": "learner"}
            ) as answer:
                assert answer.status in {200, 201}, await answer.text()
        assert await change(kim, "mina", password=BOAT) == (404, "NOT_FOUND")  # added, and not theirs to look after
        async with site.services.database.transaction() as c:  # as one who joined by an invitation
            await c.execute(
                "UPDATE class_members SET came = 'joined' WHERE user_id = (SELECT id FROM users WHERE name = 'mina')"
            )
        site.services.credentials.forget()
        assert await change(lee, "mina", password=BOAT) == (404, "NOT_FOUND")
        assert await change(kim, "mina", password=BOAT) == (204, "")
        assert await change(kim, "visitor", password=BOAT) == (404, "NOT_FOUND")
        async with at(site, HOME) as client:
            assert (await log_in(client, "mina", BOAT))[0] == 200
    await site.services.people.change_user(operator(), "mina", role=Role.TEACHER, active=None)
    async with logged_in(site, "kim", BOAT) as kim:
        assert await change(kim, "mina", password=LAMP) == (404, "NOT_FOUND")


@pytest.mark.parametrize("password", ["short", "1234567890", "hello-mina-hello", "x" * 201, "", "a" * 20])
async def test_every_rule_holds_for_new_people_and_new_passwords_and_repeats_nothing(site: Site, password: str) -> None:
    async with site.admin() as admin, logged_in(site) as client:
        sent = {"password": password, "current_password": LAMP}
        async with client.put("/api/v1/users/mina/password", json=sent) as answer:
            problem = await answer.json()
            assert (answer.status, problem["errors"][0]["field"]) == (400, "password")
            assert not password or password not in str(problem)
        async with admin.post("/api/v1/users", json={"name": "hello-mina", "password": password}) as answer:
            assert answer.status == 400
        async with admin.get("/api/v1/users/hello-mina") as answer:
            assert answer.status == 404


async def test_of_two_changes_at_once_one_is_done(site: Site) -> None:
    async with logged_in(site) as one, logged_in(site) as two:
        first, second = await asyncio.gather(
            change(one, "mina", password=BOAT, current_password=LAMP),
            change(two, "mina", password="a third one, of the sea", current_password=LAMP),
        )
    assert min(first[0], second[0]) == 204
    assert max(first[0], second[0]) in {401, 403}


async def test_no_password_is_in_anything_stored(site: Site) -> None:
    """Nor in a log: that is looked at where a whole platform writes one (`tests/browser/test_sign_in.py`)."""
    secrets = (LAMP, BOAT, "not this one", "short one")
    await use_passwords(site)
    stored = await everything_stored(site.services)
    dumped = [await site.services.redis.dump(key) async for key in site.services.redis.scan_iter("*")]
    keys = [key async for key in site.services.redis.scan_iter("*")]
    for secret in secrets:
        for word in (secret, secret.replace(" ", "+"), secret.replace(" ", "%20")):
            assert word not in stored
            assert not any(word.encode() in (found or b"") for found in [*dumped, *keys])


async def use_passwords(site: Site) -> None:
    """Rightly and wrongly."""
    async with logged_in(site) as client:
        await change(client, "mina", password="short one", current_password=LAMP)
        await change(client, "mina", password=BOAT, current_password="not this one")
        await change(client, "mina", password=BOAT, current_password=LAMP)
        await log_in(client, "mina", LAMP)
        await log_in(client, LAMP, BOAT, instead_of="mina")
        async with client.post("/login", data={"name": LAMP, "password": BOAT}) as answer:
            assert BOAT not in await answer.text()
            assert LAMP not in str(answer.url)


# --- pages ----------------------------------------------------------------------------------------------------------


async def post(client: aiohttp.ClientSession, path: str, **form: str) -> tuple[int, str, str]:
    """Status, where it leads, and the page."""
    async with client.post(path, data=form, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("location", ""), await answer.text()


async def test_the_page_logs_in_and_leads_to_where_the_person_wanted_to_go(site: Site) -> None:
    async with at(site, HOME) as browser:
        for path in ("/", "/login"):
            async with browser.get(path) as answer:
                page = await answer.text()
            for part in ('action="/login"', 'autocomplete="username webauthn"', 'autocomplete="current-password"'):
                assert part in page
        async with browser.get("/learn", allow_redirects=False) as answer:
            assert answer.headers["location"] == "/"
        async with browser.get("/") as answer:
            assert "Then you get to the page you opened" in await answer.text()
        assert (await post(browser, "/login", name="mina", password=LAMP))[:2] == (303, "/learn")
        assert await me(browser) == "mina"


@pytest.mark.parametrize(
    ("language", "wrong"), [("en", "The user name or the password is wrong"), ("ko", "맞지 않습니다")]
)
async def test_what_is_wrong_is_said_at_the_field_and_the_name_stays(site: Site, language: str, wrong: str) -> None:
    async with at(site, HOME, **{"Accept-Language": language}) as browser:
        status, _, page = await post(browser, "/login", name="minna", password=BOAT)
        assert (status, wrong in page) == (401, True)
        assert 'value="minna"' in page
        assert BOAT not in page
        assert 'aria-describedby="wrong-password"' in page
        assert (await post(browser, "/login", name="", password=BOAT))[0] == 400
        assert (await post(browser, "/login", name="mina"))[0] == 400
        for _ in range(tries.QUICK.most):
            await post(browser, "/login", name="mina", password=BOAT)
        async with browser.post("/login", data={"name": "mina", "password": LAMP}) as answer:
            assert (answer.status, "retry-after" in answer.headers) == (429, True)


async def test_the_page_replaces_another_persons_session_only_where_it_had_said_so(site: Site) -> None:
    await add(site, "jun", BOAT)
    async with logged_in(site) as browser:
        status, _, page = await post(browser, "/login", name="jun", password=BOAT)  # opened before mina logged in
        assert (status, 'name="instead_of" value="mina"' in page) == (409, True)
        assert "You are logged in as mina" in page
        assert await me(browser) == "mina"
        assert (await post(browser, "/login", name="jun", password=BOAT, instead_of="mina"))[0] == 303
        assert await me(browser) == "jun"


async def test_the_first_admin_is_asked_for_a_way_in_and_reminded_until_there_is_one(site: Site) -> None:
    async with site.client() as browser:
        link = (await site.login_link("admin")).url("")
        assert (await post(browser, link))[:2] == (303, "/welcome")  # whose first step is that
        async with browser.get("/account/way-in") as answer:
            assert "Not now" in await answer.text()
        async with browser.get("/") as answer:
            assert "no password or passkey yet" in await answer.text()
        form = {"password": "1234567890", "then": "choose"}
        status, location, _ = await post(browser, "/do/account/password", **form)
        assert (status, location) == (303, "/account/way-in?problem=PASSWORD_COMMON")
        async with browser.get(location) as answer:
            assert "one of the most common passwords" in await answer.text()
        assert (await post(browser, "/do/account/password", password=LAMP, then="choose"))[:2] == (303, "/")
        async with browser.get("/") as answer:
            assert "no password or passkey yet" not in await answer.text()
        async with browser.get("/account/way-in", allow_redirects=False) as answer:
            assert answer.headers["location"] == "/account"
    async with site.client() as browser:
        link = (await site.login_link("admin")).url("")
        assert (await post(browser, link))[:2] == (303, "/")


async def test_the_account_page_changes_the_password_and_says_what_was_wrong(site: Site) -> None:
    async with logged_in(site) as browser:
        change_it = "/do/account/password"
        wrong = await post(browser, change_it, password=BOAT, current_password="not this one")
        assert wrong[1] == "/account?at=password&problem=WRONG_PASSWORD#password"
        assert (await post(browser, change_it, password=BOAT))[
            1
        ] == "/account?at=password&problem=CURRENT_PASSWORD#password"
        async with browser.get("/account?at=password&problem=CURRENT_PASSWORD") as answer:
            assert "Type your current password, too" in await answer.text()
        done = await post(browser, change_it, password=BOAT, current_password=LAMP)
        assert done[1] == "/account?at=password&done=password#password"
        last = await post(browser, "/do/account/remove-password", current_password=BOAT)
        assert last[1] == "/account?at=password&problem=LAST_WAY_IN#password"
        assert await me(browser) == "mina"
