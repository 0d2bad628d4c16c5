"""A small slice of `make model ARGS=waiting_room`: it holds, and it is not blind. All guards are tried in a soak."""

import pytest
from model.waiting_room.guards import GUARDS, Guard
from model.waiting_room.scenarios import COMPLETE, DEEP

SMALL = ("entering", "entering, with a crash", "two pumps, three people")
QUICK = 5000  # states


@pytest.mark.parametrize("name", SMALL)
def test_everything_holds_in_every_state_of_a_small_scenario(name: str) -> None:
    explorer = COMPLETE[name].explorer()
    found = explorer.run()
    assert not found, found
    assert explorer.complete


@pytest.mark.parametrize("name", DEEP)
def test_random_histories_hold(name: str) -> None:
    explorer = DEEP[name].explorer()
    for seed in range(3):
        assert not explorer.walk(seed, 60)


def told_by_few_states(guard: Guard) -> bool:
    return guard.name.endswith(("(trace 1)", "(trace 2)", "(trace 3)", "(trace 5)", "what is over"))


@pytest.mark.parametrize("guard", [g for g in GUARDS if told_by_few_states(g)], ids=lambda guard: guard.name)
def test_a_guard_that_is_taken_away_is_missed(guard: Guard) -> None:
    found, states = guard.hunt(QUICK)
    assert found, states


@pytest.mark.soak
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_every_guard_is_missed_or_says_why_not(guard: Guard) -> None:
    found, _ = guard.hunt()
    assert bool(found) != bool(guard.survives), found


@pytest.mark.soak
@pytest.mark.parametrize("name", COMPLETE)
def test_everything_holds_in_every_state(name: str) -> None:
    explorer = COMPLETE[name].explorer()
    assert not explorer.run()
    assert explorer.complete
