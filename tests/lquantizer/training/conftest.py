"""TensorFlow on one thread: tests share a small machine, and sums come out the same everywhere."""

from __future__ import annotations

import contextlib

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    threading = pytest.importorskip("tensorflow").config.threading
    with contextlib.suppress(RuntimeError):  # it runs already, with the threads that it has
        threading.set_intra_op_parallelism_threads(1)
        threading.set_inter_op_parallelism_threads(1)
