"""Watch a model run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from luciole.ir import Array, Op, Value


class Observer:
    """Base of observers: override what you need. Arrays are the interpreter's own: copy what you
    keep.
    """

    def before_operator(self, op: Op) -> None:
        """Learn that an operator is about to run."""

    def after_operator(self, op: Op) -> None:
        """Learn that an operator ran."""

    def after_tensor_write(self, value: Value, array: Array) -> None:
        """Learn that a tensor got its contents; model inputs are reported before the first
        operator.
        """


class ActivationSaver(Observer):
    """Keeps the contents of chosen tensors, invocation by invocation, for calibration."""

    def __init__(self, values: Iterable[Value]) -> None:
        self._kept: dict[Value, list[Array]] = {value: [] for value in values}

    def after_tensor_write(self, value: Value, array: Array) -> None:
        """Copy a tensor that was asked for."""
        kept = self._kept.get(value)
        if kept is not None:
            kept.append(np.atleast_1d(array.copy()))

    def saved(self, value: Value) -> Array:
        """Return everything kept of a tensor, along its first axis. Raises KeyError for one that
        was not asked for.
        """
        return np.concatenate(self._kept[value])
