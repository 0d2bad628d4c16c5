"""What must survive is on a disk, as it is for people."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.places import a_place


@pytest.fixture
def data_dir() -> Iterator[pathlib.Path]:
    with a_place(on_disk=True) as folder:
        yield folder / "data"
