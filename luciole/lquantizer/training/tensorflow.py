"""The one door to TensorFlow: imported when a function runs, without its messages."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from luciole.ir.errors import missing_extra

TensorFlow = Any
"""The module ``tensorflow``: it has no types that a checker could read, nor have its objects."""
Tensor = Any
"""A ``tf.Tensor``, or a NumPy array where the model holds a constant."""


def tensorflow() -> TensorFlow:
    """Import TensorFlow. Raises LucioleError, in one line, when it is missing."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with _quiet():
            import tensorflow as module
    except ImportError:
        raise missing_extra("fine-tuning: this needs TensorFlow", "tensorflow") from None
    module.get_logger().setLevel("ERROR")  # a search traces many networks, which it warns of
    return module


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the messages of TensorFlow's libraries, while these load, away from standard error."""
    saved = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
