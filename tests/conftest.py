"""What every test may be run with."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

from luciole.kernels.core.allocation import Allocator, use
from tests.guard.memory import ENDS, watch

pytest_plugins = ["tests.durations"]

# Hundreds of processes import luciole while tests run: each compiled all of its modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guard",
        choices=ENDS,
        help="put what compiled kernels touch at an end of a page that nobody may touch",
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected, which live as long as the process
    if hasattr(config, "workerinput"):  # one of several processes that run tests
        _compile_alone()
    end = config.getoption("--guard")
    if end is not None:
        watch(end)


def _compile_alone() -> None:
    """Compile kernels in this process: other workers have the other cores, and a process that has
    run hundreds of tests is large to be forked.
    """
    from luciole.kernels.jit import together

    together.cores = lambda: 1


def pytest_collection_finish() -> None:
    """Have the collector look through what tests make, not again and again through all tests."""
    gc.enable()
    _keep()


@pytest.hookimpl(trylast=True)  # behind what modules' fixtures take down
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor through what the tests of a file left: modules such as TensorFlow's, compiled kernels."""
    if nextitem is None or nextitem.path != item.path:
        _keep()


def _keep() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture
def without_guard() -> Iterator[None]:
    """Memory as users have it, whatever the tests are run with."""
    before = use(Allocator())
    yield
    use(before)
