"""What needs a git server is not selected where there is no git, and counted so."""

import pytest

from tests.workspaces.git_server import CAN_SERVE

BY_GIT = ("test_fetch.py", "test_fetch_crashes.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.name in BY_GIT and not CAN_SERVE]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
