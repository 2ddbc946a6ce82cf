"""Keras for the tests of this folder."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest


@pytest.fixture(scope="session")
def keras() -> Any:
    """Keras on one thread, with a fixed seed."""
    tensorflow = pytest.importorskip("tensorflow", reason="needs the extra tensorflow")
    with contextlib.suppress(RuntimeError):  # it runs already, with the threads that it has
        tensorflow.config.threading.set_intra_op_parallelism_threads(1)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    tensorflow.keras.utils.set_random_seed(0)
    return tensorflow.keras
