"""URLs of one server or of several: what is read of them, and what is said of wrong ones, without a secret."""

import pytest

from codehub.db.redis import open_redis
from codehub.logs import redact_text
from codehub.settings import server_urls
from codehub.settings.server_urls import Kind

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "primary", "first"),
    [
        ("redis://h/1", Kind.SERVER, (), "", "redis://h/1"),
        ("unix:///run/redis.sock?db=1", Kind.SERVER, (), "", "unix:///run/redis.sock?db=1"),
        (
            f"redis+sentinel://u:{SECRET}@a,b:1,[::1]:2/labs/3?sentinel_password=x",
            *(Kind.SENTINEL, (("a", 26379), ("b", 1), ("::1", 2)), "labs", f"redis://u:{SECRET}@a:26379/3"),
        ),
        ("redis+cluster://a,b:1", Kind.CLUSTER, (("a", 6379), ("b", 1)), "", "redis://a:6379/0"),
        (
            "rediss+cluster://a/0?ssl_ca_certs=/ca.pem",
            *(Kind.CLUSTER, (("a", 6379),), "", "rediss://a:6379/0?ssl_ca_certs=%2Fca.pem"),
        ),
    ],
)
def test_a_url_of_redis_says_what_kind_it_is(
    url: str, kind: Kind, hosts: tuple[tuple[str, int], ...], primary: str, first: str
) -> None:
    found = server_urls.redis(url)
    assert (found.kind, found.hosts, found.primary, found.url) == (kind, hosts, primary, first)
    assert SECRET not in repr(found)
    assert SECRET not in redact_text(url)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://h", "must be a URL beginning with redis://"),
        ("redis+other://h", "must be a URL beginning with redis://"),
        ("unix+cluster://h", "must be a URL beginning with redis://"),
        ("redis://a:1,b:2/0", "names several servers"),
        ("redis+sentinel://a,b", "lacks the primary's name"),
        ("redis+sentinel://a/labs/x", "the number of a database"),
        ("redis+cluster://a,b/1", "only number 0"),
        ("redis+cluster://a,,b", "separated by commas"),
        ("redis+cluster://", "separated by commas"),
        ("redis+cluster://a:70000", "a port that there cannot be"),
        ("redis+cluster://a?sentinel_password=x", "not known: sentinel_password"),
        (f"redis+sentinel://u:{SECRET}/x@a/labs", "%2F"),
        (f"redis+cluster://u:{SECRET}#x@a", "%2F"),
        ("redis+cluster://[::1", "separated by commas"),
        ("redis://[::1", "not a valid URL"),
        ("redis://h:x", "not a valid URL"),
        ("redis://h?nonsense=1", "not known: nonsense"),
        ("redis+sentinel://a/labs?ssl_ca_certs=/ca.pem", "begin it with rediss+sentinel://"),
        (f"redis://u:1?{SECRET}=x@h/0", "write / @ : # ?"),
        (f"redis://u:1#{SECRET}@h/0", "write / @ : # ?"),
        (f"redis+cluster://u:1?{SECRET}=x@h1,h2", "write / @ : # ?"),
        (f"redis+sentinel://u:1?{SECRET}=x@h1,h2/m", "write / @ : # ?"),
    ],
)
def test_what_is_wrong_with_a_url_of_redis_is_said_in_a_line(url: str, problem: str) -> None:
    said = server_urls.redis_problem(url)
    assert said
    assert problem in said
    assert SECRET not in said
    assert "\n" not in said
    with pytest.raises(ValueError, match=r"\w"):
        open_redis(url)


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u:p@h/db", ["postgresql://u:p@h/db"]),
        ("postgres://u@/db?host=/run/pg", ["postgres://u@/db?host=/run/pg"]),
        (
            "postgresql://u:p@a:1,b/db?target_session_attrs=primary",
            [
                "postgresql://u:p@a:1/db?target_session_attrs=primary",
                "postgresql://u:p@b/db?target_session_attrs=primary",
            ],
        ),
    ],
)
def test_a_url_of_postgresql_is_one_for_each_host(url: str, each: list[str]) -> None:
    assert list(server_urls.postgres(url)) == each
    assert server_urls.postgres_problem(url) is None


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://h/db", "must be a URL beginning with postgresql://"),
        ("postgresql://a,b/db?target_session_attrs=standby", "CodeHub writes"),
        ("postgresql://h/db?target_session_attrs=any", "CodeHub writes"),
        (f"postgresql://u:{SECRET}@a,,b/db", "separated by commas"),
        ("postgresql://[::1/db", "not a valid URL"),
        (f"postgresql://u:1?target_session_attrs={SECRET}@h/db", "CodeHub writes"),
    ],
)
def test_what_is_wrong_with_a_url_of_postgresql_is_said_in_a_line(url: str, problem: str) -> None:
    said = server_urls.postgres_problem(url)
    assert said
    assert problem in said
    assert SECRET not in said
