"""A proxy in front of a recording upstream, shared by the tests of a file that leave both as they found them."""

import itertools
import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from codehub.proxy.model import Forward, Limits
from tests.proxy.harness import Proxy, ToOne, Upstream

_numbers = itertools.count(1)


@pytest.fixture
def socket_path() -> Iterator[str]:
    """Short: a Unix socket's path has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        yield str(pathlib.Path(folder) / f"{next(_numbers)}.sock")


@pytest.fixture(scope="module")
def recording() -> Iterator[tuple[Proxy, Upstream]]:
    upstream = Upstream()
    proxy = Proxy(ToOne(Forward(upstream.address)), Limits(linger_seconds=2.0))
    yield proxy, upstream
    proxy.close()
    upstream.close()
