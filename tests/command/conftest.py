"""One platform for the tests of a file, as commands meet it: with a folder of templates that only it knows."""

from collections.abc import Iterator

import pytest

from tests.platform import Platform
from tests.workspaces.test_lifecycle import lab


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started
