import pathlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from cluster import images, layout, lifecycle
from playwright.async_api import Browser

from tests.archives import s3
from tests.browser.conftest import Lab as Visitors
from tests.clusters.kubectl import Kubectl
from tests.deploy.front import browser_of
from tests.deploy.lab import IMAGE, NAMESPACE, NEXT, PASSWORD, Beside, Front, Lab
from tests.failover.standby import running_pair
from tests.waiting_room.clusters import running_cluster


@pytest.fixture(scope="session")
def folder() -> Iterator[pathlib.Path]:
    made = pathlib.Path(tempfile.mkdtemp(prefix="codehub-chart-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lab(kubernetes: str, folder: pathlib.Path) -> AsyncIterator[Lab]:
    """Servers, and nothing installed yet."""
    place = layout.place()
    for node in layout.NODES:
        tag = ["images", "tag", "--force", f"{IMAGE}:latest", f"{IMAGE}:{NEXT}"]
        images._ctr(place, lifecycle._software(), node, *tag)
    async with running_pair(place.host_address) as pair:
        with (
            running_cluster(place.host_address, PASSWORD) as valkey,
            s3.one_that_can_be_lost(place.host_address) as store,
        ):
            made = Lab(Kubectl(place, NAMESPACE), Beside(pair, valkey, store), folder)
            yield made
            made.remove()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def front(lab: Lab) -> Front:
    """The chart is installed, and all of it is ready."""
    return lab.install()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def outside(front: Front, folder: pathlib.Path) -> AsyncIterator[Browser]:
    """A browser that comes from outside of the cluster."""
    async with browser_of(front.address, folder) as browser:
        yield browser


@pytest.fixture
def visitors(front: Front, outside: Browser) -> Iterator[Visitors]:
    """Fails the test when a page of ours complained; what JupyterLab says in its frame is its own."""
    made = Visitors(front, outside)
    yield made
    assert [complaint for complaint in made.complaints if f"({front.url}" in complaint] == []
