"""What every test may be run with."""

from __future__ import annotations

import pytest

from tests.guard.memory import ENDS, watch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guard",
        choices=ENDS,
        help="put what compiled kernels touch at an end of a page that nobody may touch",
    )


def pytest_configure(config: pytest.Config) -> None:
    end = config.getoption("--guard")
    if end is not None:
        watch(end)
