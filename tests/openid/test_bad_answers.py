"""Every answer that a good provider would not give is refused, with a page that says what to do, and logged why."""

import base64
import hashlib
import hmac
import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from structlog.testing import capture_logs

from tests.openid import wicked
from tests.openid.conftest import Sites
from tests.openid.visits import Answer, callback, get, leave, post, visit, whoami
from tests.openid.wicked import CLIENT_SECRET, Wicked, new_key
from tests.virtual_time import ManualClock
from tests.web.server import Site

Change = Callable[[Wicked], None]


def encoded(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{encoded({'alg': 'none', 'kid': 'first'})}.{encoded(claims)}."


def signed_with_the_public_key(provider: Wicked) -> Callable[[dict[str, Any]], str]:
    """The old trick: an HMAC whose secret is the key that everybody can read."""

    def sign(claims: dict[str, Any]) -> str:
        text = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{encoded(claims)}"
        digest = hmac.digest(provider.key.as_pem(private=False), text.encode(), hashlib.sha256)
        return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    return sign


def signed_by_another(kid: str) -> Callable[[dict[str, Any]], str]:
    key = new_key(kid)
    return lambda claims: jwt.encode({"alg": "RS256", "kid": kid}, claims, key)


def tampered(provider: Wicked) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        head, _, signature = jwt.encode({"alg": "RS256", "kid": "first"}, claims, provider.key).split(".")
        return f"{head}.{encoded({**claims, 'sub': 'admin'})}.{signature}"

    return sign


def with_own_key(claims: dict[str, Any]) -> str:
    """A token that brings the key it is to be checked with."""
    key = new_key("first")
    header = {"alg": "RS256", "kid": "first", "jwk": key.as_dict(private=False)}
    return jwt.encode(header, claims, key)


def deep_header() -> str:
    return base64.urlsafe_b64encode(b'{"alg":' + b"[" * 40_000).decode()


def deep_claims(provider: Wicked) -> Callable[[dict[str, Any]], str]:
    """Signed with the right key."""
    header = {"alg": "RS256", "kid": "first"}
    return lambda _: jws.serialize_compact(header, b'{"a":' + b"[" * 20_000, provider.key)


def halved(name: str) -> Callable[[Wicked], Callable[[dict[str, Any]], str]]:
    """Half of a surrogate pair, which JSON can say and UTF-8 cannot."""
    header = {"alg": "RS256", "kid": "first"}

    def of(provider: Wicked) -> Callable[[dict[str, Any]], str]:
        return lambda claims: jws.serialize_compact(
            header, json.dumps({**claims, name: "\ud800"}).encode(), provider.key
        )

    return of


def says(**claims: Any) -> Change:
    return lambda provider: provider.claims.update(claims)


def signs(sign: Callable[[dict[str, Any]], str] | None = None, **made: Any) -> Change:
    return lambda provider: setattr(provider, "sign", sign or made["of"](provider))


def answers(**said: Any) -> Change:
    return lambda provider: provider.answer.update(said)


def gives(**said: Any) -> Change:
    return lambda provider: provider.token_answer.update(said)


def leaves_out(name: str) -> Change:
    return lambda provider: provider.left_out.add(name)


NOW = int(ManualClock().timestamp())
BAD: dict[str, tuple[Change, int, str, str]] = {
    "wrong issuer": (says(iss="https://evil.example"), 502, "cannot be trusted", "wrong issuer"),
    "an issuer with a slash more": (says(iss="http://127.0.0.1/"), 502, "cannot be trusted", "wrong issuer"),
    "wrong audience": (says(aud="another"), 502, "cannot be trusted", "wrong audience"),
    "no audience": (leaves_out("aud"), 502, "cannot be trusted", "wrong audience"),
    "several audiences": (says(aud=["codehub", "another"]), 502, "cannot be trusted", "several audiences"),
    "another's party": (says(azp="another"), 502, "cannot be trusted", "wrong authorized party"),
    "wrong nonce": (says(nonce="guessed"), 502, "cannot be trusted", "wrong nonce"),
    "no nonce": (leaves_out("nonce"), 502, "cannot be trusted", "wrong nonce"),
    "a nonce that is a number": (says(nonce=1), 502, "cannot be trusted", "wrong nonce"),
    "expired": (says(exp=NOW - 61), 502, "cannot be trusted", "expired"),
    "never expires": (says(exp=math.inf), 502, "cannot be trusted", "no usable exp"),
    "an expiry that is true": (says(exp=True), 502, "cannot be trusted", "no usable exp"),
    "no expiry": (leaves_out("exp"), 502, "cannot be trusted", "no usable exp"),
    "from the future": (says(iat=NOW + 61), 502, "cannot be trusted", "issued in the future"),
    "not yet valid": (says(nbf=NOW + 61), 502, "cannot be trusted", "not yet valid"),
    "no subject": (says(sub=""), 502, "cannot be trusted", "no usable subject"),
    "a subject that is a list": (says(sub=["s-mina"]), 502, "cannot be trusted", "no usable subject"),
    "a subject with a NUL": (says(sub="s-\0mina"), 502, "cannot be trusted", "no usable subject"),
    "algorithm none": (signs(unsigned), 502, "cannot be trusted", "'none' is not accepted"),
    "HMAC with the public key": (
        signs(of=signed_with_the_public_key), 502, "cannot be trusted", "'HS256' is not accepted",
    ),
    "an unknown key": (signs(signed_by_another("unheard-of")), 502, "cannot be trusted", "does not publish"),
    "another key by the same name": (signs(signed_by_another("first")), 502, "cannot be trusted", "wrong signature"),
    "a changed token": (signs(of=tampered), 502, "cannot be trusted", "wrong signature"),
    "a token with its own key": (signs(with_own_key), 502, "cannot be trusted", "wrong signature"),
    "an expiry of many digits": (says(exp=10**400), 502, "cannot be trusted", "no usable exp"),
    "half a character in a nonce": (signs(of=halved("nonce")), 502, "cannot be trusted", "wrong nonce"),
    "half a character in a hash": (signs(of=halved("at_hash")), 502, "cannot be trusted", "access token is another"),
    "half a character in a subject": (signs(of=halved("sub")), 502, "cannot be trusted", "no usable subject"),
    "half a character in an access token": (gives(access_token="\ud800"), 502, "cannot be trusted", "no usable access"),
    "an access token with a line": (gives(access_token="a\r\nb: c"), 502, "cannot be trusted", "no usable access"),
    "a header of many levels": (gives(id_token=deep_header()), 502, "cannot be trusted", "no token"),
    "claims of many levels": (signs(of=deep_claims), 502, "cannot be trusted", "wrong signature"),
    "no token": (gives(id_token=None), 502, "cannot be trusted", "no ID token"),
    "not a token": (gives(id_token="a.b"), 502, "cannot be trusted", "no token"),
    "a token of many bytes": (gives(id_token="a" * 100_000), 502, "cannot be trusted", "too long"),
    "another's access token": (gives(access_token="stolen"), 502, "cannot be trusted", "access token is another"),
    "an answer of another issuer": (answers(iss="https://evil.example"), 400, "another log-in", "another issuer"),
    "an answer without its issuer": (answers(iss=""), 400, "another log-in", "does not name its issuer"),
    "no code": (answers(code=""), 502, "did not let this through", "no code"),
    "a code that is not its own": (answers(code="guessed"), 502, "cannot be trusted", "invalid_grant"),
    "the person said no": (answers(code="", error="access_denied"), 403, "You did not log in", "access_denied"),
    "an error": (answers(code="", error="unauthorized_client"), 502, "did not let this", "unauthorized_client"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_answer_is_refused_and_logged(site: Site, provider: Wicked, name: str) -> None:
    change, status, shown, logged = BAD[name]
    change(provider)
    async with site.client() as browser:
        with capture_logs() as lines:
            answer = await visit(browser)
        assert (answer.status, shown in answer.text) == (status, True), answer
        assert "/login" in answer.text
        assert await whoami(browser) is None
    refusals = [line for line in lines if line["event"] == "A login by a provider was refused"]
    assert [logged in line["why"] for line in refusals] == [True], refusals
    assert CLIENT_SECRET not in json.dumps(lines, default=str)
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM identities") == 0


@pytest.mark.parametrize("language", ["en", "ko"])
async def test_a_refusal_is_said_in_the_readers_language(site: Site, provider: Wicked, language: str) -> None:
    provider.claims = {"aud": "another"}
    async with site.client(**{"Accept-Language": language}) as browser:
        answer = await visit(browser)
    assert ("믿을 수 없습니다" if language == "ko" else "cannot be trusted") in answer.text
    assert "Hanbit School" in answer.text


async def test_an_answer_is_good_once(site: Site, provider: Wicked) -> None:
    """Also for a provider that takes its codes twice."""
    provider.replays_codes = True
    async with site.client() as browser:
        back = await callback(browser)
        assert (await get(browser, back)).status == 303
        await post(browser, "/logout")
        again = await get(browser, back)
        assert (again.status, "is over" in again.text) == (400, True)
        assert await whoami(browser) is None


async def test_an_answer_for_another_browser_is_worth_nothing(site: Site) -> None:
    """Login CSRF: an attacker sends the address with their own code to another person."""
    async with site.client() as attacker, site.client() as victim:
        back = await callback(attacker)
        await leave(victim)  # has a login of their own under way
        assert (await get(victim, back)).status == 400
        assert await whoami(victim) is None
        assert (await get(attacker, back)).status == 400, "it was used up"


@pytest.mark.parametrize("state", ["", "guessed", "a" * 5000, "%00"])
async def test_a_state_that_was_not_given_out_is_refused(site: Site, state: str) -> None:
    async with site.client() as browser:
        back = await callback(browser)
        base, _, rest = back.partition("state=")
        answer = await get(browser, f"{base}state={state}&{rest.partition('&')[2]}")
        assert answer.status == 400
        assert await whoami(browser) is None


async def test_a_login_that_took_too_long_is_over(site: Site, clock: ManualClock) -> None:
    async with site.client() as browser:
        back = await callback(browser)
        await clock.advance(601)
        assert (await get(browser, back)).status == 400


@pytest.fixture
async def evil(clock: ManualClock) -> AsyncIterator[Wicked]:
    async with wicked.running(clock) as started:
        yield started


async def test_mixed_up_providers_are_told_apart(sites: Sites, provider: Wicked, evil: Wicked) -> None:
    """The answer that one provider gave is brought to the address of the other."""
    said = {**sites.school(), "issuer": evil.issuer, "title": "Evil"}
    site = await sites.open_with(school=sites.school(), evil=said)
    async with site.client() as browser:
        back = await callback(browser)
        answer = await get(browser, back.replace("/login/school/", "/login/evil/"))
        assert (answer.status, "another log-in" in answer.text) == (400, True)
    assert "/token" not in evil.asked, "the code was not handed to the other one"
    async with site.client() as browser:
        evil.answer = {"iss": provider.issuer}
        assert (await visit(browser, "/do/login/evil")).status == 400
        evil.answer, evil.claims = {}, {"iss": provider.issuer}
        assert (await visit(browser, "/do/login/evil")).status == 502


async def test_a_discovery_document_of_another_issuer_is_not_followed(site: Site, provider: Wicked) -> None:
    provider.discovery = {"issuer": "https://accounts.example.org"}
    async with site.client() as browser:
        assert (await post(browser, "/do/login/school")).location == "/login?away=school"


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize(
    "url", [None, "http://evil.example/x", "javascript:alert(1)", "//x", "http://u:p@127.0.0.1/", 1]
)
async def test_an_endpoint_without_tls_is_not_used(site: Site, provider: Wicked, name: str, url: object) -> None:
    provider.discovery = {name: url}
    async with site.client() as browser:
        assert (await post(browser, "/do/login/school")).location == "/login?away=school"


async def away(site: Site) -> Answer:
    async with site.client() as browser:
        begun = await post(browser, "/do/login/school")
        assert (begun.status, begun.location) == (303, "/login?away=school")
        return await get(browser, begun.location)


@pytest.mark.parametrize(
    "change",
    [{"status": 503}, {"status": 429}, {"status": 404}, {"oversized": True}, {"redirects_to": "http://127.0.0.1:1/"}],
    ids=str,
)
async def test_a_provider_that_is_away_leaves_the_page_and_its_other_ways(
    site: Site, provider: Wicked, change: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(provider, name, value)
    page = await away(site)
    assert page.status == 200
    assert "Hanbit School does not answer right now" in page.text
    assert 'name="password"' in page.text
    assert provider.asked == ["/.well-known/openid-configuration"]


async def test_a_provider_that_never_answers_is_not_waited_for(
    site: Site, provider: Wicked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codehub.openid.fetch.SECONDS", 0.2)
    provider.hangs = True
    assert "does not answer right now" in (await away(site)).text


async def test_those_who_come_at_once_do_not_each_wait_for_a_provider_that_is_away(
    site: Site, provider: Wicked, clock: ManualClock
) -> None:
    provider.status = 503
    for _ in range(5):
        await away(site)
    assert len(provider.asked) == 1
    provider.status = 0
    await clock.advance(4)
    async with site.client() as browser:
        assert (await visit(browser)).status == 303


async def test_a_provider_that_goes_away_in_the_middle_leads_back_to_the_page(site: Site, provider: Wicked) -> None:
    async with site.client() as browser:
        back = await callback(browser)
        provider.status = 503
        answer = await get(browser, back)
        assert (answer.status, answer.location) == (303, "/login?away=school")


async def test_keys_that_were_rotated_are_read_again_but_not_too_often(
    site: Site, provider: Wicked, clock: ManualClock
) -> None:
    async def log_in() -> int:
        async with site.client() as browser:
            return (await visit(browser)).status

    assert await log_in() == 303
    await clock.advance(31)
    provider.key = new_key("second")
    assert await log_in() == 303
    assert provider.asked.count("/jwks") == 2
    provider.key = new_key("third")
    assert [await log_in(), await log_in()] == [502, 502]
    assert provider.asked.count("/jwks") == 2, "half a minute has not passed"
    await clock.advance(31)
    assert await log_in() == 303


async def test_a_key_that_is_too_small_or_for_other_uses_is_none(site: Site, provider: Wicked) -> None:
    public: dict[str, Any] = {**provider.key.as_dict(private=False)}
    bad: tuple[list[Any], ...] = (
        [{**public, "use": "enc"}],
        [{"kty": "oct", "k": "c2VjcmV0", "kid": "first"}],
        [{"kty": "RSA", "kid": "first", "n": "AQAB", "e": "AQAB"}],
        ["first", None, {}],
        [],
    )
    for published in bad:
        provider.published = published
        async with site.client() as browser:
            assert (await visit(browser)).status == 502


@pytest.mark.parametrize(("algorithm", "curve"), [("ES256", "P-256"), ("PS256", ""), ("ES512", "P-521")])
async def test_other_good_algorithms_are_taken(site: Site, provider: Wicked, algorithm: str, curve: str) -> None:
    parameters: Any = {"kid": "k", "use": "sig"}
    key = ECKey.generate_key(curve, parameters) if curve else RSAKey.generate_key(2048, parameters)
    provider.published = [*KeySet([key]).as_dict(private=False)["keys"]]
    provider.left_out = {"at_hash"}
    provider.sign = lambda claims: jwt.encode({"alg": algorithm, "kid": "k"}, claims, key, algorithms=[algorithm])
    async with site.client() as browser:
        assert (await visit(browser)).status == 303


async def test_what_userinfo_says_of_another_person_is_not_believed(site: Site, provider: Wicked) -> None:
    provider.left_out = {"name"}
    provider.userinfo = {"sub": "s-admin", "name": "Admin"}
    async with site.client() as browser:
        answer = await visit(browser)
        assert (answer.status, "cannot be trusted" in answer.text) == (502, True)


async def test_an_unknown_provider_is_not_there(site: Site) -> None:
    async with site.client() as browser:
        assert (await post(browser, "/do/login/nobody")).status == 404
        assert (await get(browser, "/login/nobody/callback?code=x&state=y")).status == 404
        assert (await get(browser, "/login/nobody/leave?state=y")).status == 404
