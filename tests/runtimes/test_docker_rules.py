"""What the Docker runtime decides without an engine."""

import pathlib

import pytest

from codehub.runtimes.base import ImageNotFoundError, Workload
from codehub.runtimes.docker import bodies
from codehub.runtimes.docker.bodies import Place
from codehub.runtimes.docker.disk_guard import Amount, amount_when_full, verdict
from codehub.runtimes.docker.names import Names
from codehub.runtimes.limits import Limits
from codehub.templates.model import ContainerSpec, Template

MIB = 1 << 20
PLACE = Place("home", None, 4711, "/run/w/w1", "/etc-of-w1", "", "none", 999, "2026-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("most", "at_start", "now", "ends"),
    [
        (Amount(), Amount(), Amount(1 << 50, 10**9), False),  # no limit
        (Amount(100 * MIB, 1000), Amount(), Amount(100 * MIB, 1000), False),
        (Amount(100 * MIB, 1000), Amount(), Amount(100 * MIB + 1, 1), True),
        (Amount(100 * MIB, 1000), Amount(), Amount(1, 1001), True),
        # Too large already when it was started: it may be emptied, and a text saved.
        (Amount(100 * MIB, 1000), Amount(300 * MIB, 5), Amount(320 * MIB, 5), False),
        (Amount(100 * MIB, 1000), Amount(300 * MIB, 5), Amount(340 * MIB, 5), True),
        (Amount(100 * MIB, 1000), Amount(5, 5000), Amount(5, 5900), False),
        (Amount(100 * MIB, 1000), Amount(5, 5000), Amount(5, 6001), True),
    ],
)
def test_a_home_ends_its_workspace_when_it_has_grown_beyond_its_limit(
    most: Amount, at_start: Amount, now: Amount, ends: bool
) -> None:
    assert (verdict(most, at_start, now) is not None) is ends


def test_what_was_measured_last_counts_only_where_it_was_too_much(tmp_path: pathlib.Path) -> None:
    usage, most = tmp_path / "usage.json", Amount(100, 10)
    assert amount_when_full(usage, most) == Amount()
    for text, found in (
        ('{"bytes": 100, "files": 10}', Amount()),
        ('{"bytes": 101, "files": 10}', Amount(101, 10)),
        ('{"bytes": 1, "files": 11}', Amount(1, 11)),
        ('{"bytes": 1}', Amount()),
        ('{"bytes": 101, "other": 1}', Amount()),
        ("[", Amount()),
    ):
        usage.write_text(text)
        assert amount_when_full(usage, most) == found, text


def workload(spec: ContainerSpec | None, **environment: str) -> Workload:
    return Workload("w1", "mina", Template("t", "T", ready="/api", container=spec), environment)


def test_an_ide_is_told_what_the_template_says_and_nothing_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEHUB_ADMIN_TOKEN", "the-platforms-own-secret")
    spec = ContainerSpec("image", ("ide", "--port={port}", "{home}", "{other}"), port=9000, env={"BASE": "{base_path}"})
    body = bodies.ide(workload(spec, GIVEN="x"), PLACE, Limits(), 1 << 20, Names("me"))
    assert body["Cmd"] == ["ide", "--port=9000", "/home/mina", "{other}"]
    assert {"BASE=/w/w1/", "GIVEN=x", "HOME=/home/mina", "USER=mina"} <= set(body["Env"])
    assert "the-platforms-own-secret" not in str(body)
    assert body["User"] == "4711:4711"
    relay = bodies.relay_beside("c0ffee", workload(spec), PLACE, "platform", Names("me"))
    assert relay["Cmd"] == ["/run/door/sock", "tcp:9000"]
    assert "Env" not in relay
    with pytest.raises(ImageNotFoundError, match=r"no \[container\] section"):
        bodies.spec_of(workload(None))


def test_without_limits_none_is_set() -> None:
    host = bodies.ide(workload(ContainerSpec("image", port=80)), PLACE, Limits(), 1 << 20, Names("me"))["HostConfig"]
    assert not {"Memory", "PidsLimit", "NanoCpus", "CpuShares"} & set(host)
    assert host["Ulimits"] == []
