"""What needs a compiler is not selected where there is none, and counted so."""

import pytest

from tests.ides.small_packages import CAN_BUILD


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.name == "test_install_loop.py" and not CAN_BUILD]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
