"""What ended before its time is known to the proxy's workers, for as long as it could still be shown to them."""

from codehub.auth.logins import Browser
from codehub.auth.revocations import OVERLAP, Revocations
from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.services import Services
from tests.virtual_time import ManualClock

DAY = 86400


async def test_a_revocation_is_forgotten_when_the_credential_would_have_expired(
    services: Services, clock: ManualClock
) -> None:
    people = services.people
    await people.create_user(operator(), "mina", Role.LEARNER)
    revocations = Revocations(services.database, clock)
    for round_ in range(3):
        made = await people.create_token(operator(), "mina", label="", scopes=None, days=1)
        await people.revoke_token(operator(), "mina", made.token.id)
        assert await revocations.read() == {made.token.id}, round_
        assert await revocations.read() == set()
        assert set(revocations.ids) == {made.token.id}
        await clock.advance(DAY + OVERLAP.total_seconds() + 1)
    await revocations.read()
    assert not revocations.ids
    fresh = Revocations(services.database, clock)
    assert await fresh.read() == set()  # a worker that starts now has nothing to remember of them


async def test_a_sessions_revocation_outlives_every_pass_that_was_made_from_it(
    services: Services, clock: ManualClock
) -> None:
    people = services.people
    await people.create_user(operator(), "mina", Role.LEARNER)
    link = await people.make_login_link(operator(), "mina")
    cookie = await people.log_in(link.secret, Browser("", operator().origin))
    caller, _ = await services.credentials.by_cookie(cookie, operator().origin)
    assert caller.session_id
    await people.log_out(caller)
    revocations = Revocations(services.database, clock)
    await clock.advance(services.settings.auth.session_seconds - 1)
    await revocations.read()
    assert set(revocations.ids) == {caller.session_id}
