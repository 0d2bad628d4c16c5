import pathlib
import tempfile
from collections.abc import AsyncIterator

import pytest

from codehub.web.services import Services
from tests.gate.lab import Lab, opened


@pytest.fixture
async def lab(services: Services) -> AsyncIterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        async with opened(services, pathlib.Path(folder)) as started:
            yield started
