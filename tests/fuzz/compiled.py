"""Compiled kernels against the NumPy ones, operator by operator, on what a run gave each."""

from __future__ import annotations

from itertools import groupby
from math import prod

import numpy as np

from luciole.interpreter import Observer, Plan
from luciole.ir import Array, LucioleError, Op, Value
from luciole.kernels.core import evaluation

_RELATIVE = 1e-4
"""How far floats may be apart, of the largest finite one: sums have another order."""

LARGEST = float(np.finfo(np.float32).max)

_TINY = 1e-30
"""What does not count: products pass through numbers with fewer digits."""


class Compared(Observer):
    """Computes every compiled step of a plan that keeps its tensors once more by NumPy, but for
    operators that several steps stand for.

    ``differences`` has a line for each result that differs; floats may by rounding.
    """

    def __init__(self, plan: Plan) -> None:
        self.differences: list[str] = []
        self._plan = plan
        self._groups = (list(steps) for _, steps in groupby(plan.steps, lambda step: step.source))
        self._operands: list[Array | None] = []

    def before_operator(self, op: Op) -> None:
        """Keep the operands: a step may write over one."""
        self._steps = next(self._groups)
        self._operands = [None if v is None else self._contents(v).copy() for v in op.operands]

    def after_operator(self, op: Op) -> None:
        """Compare the results."""
        step, *others = self._steps
        if step.native is None or others:
            return
        try:
            wanted = evaluation.call(step.reference, step.op, self._operands)
        except LucioleError as error:  # the compiled kernel computed something all the same
            self.differences.append(f"NumPy refuses what ran compiled: {error}")
            return
        for value, array in zip(op.results, wanted, strict=True):
            found = self._contents(value)
            if not alike(found, array) and not self._overflowed(op, found, array):
                shown = [a.ravel()[:8].tolist() for a in (found, array)]
                self.differences.append(f"{op}: compiled {shown[0]}, NumPy {shown[1]}")

    def _overflowed(self, op: Op, *results: Array) -> bool:
        """Whether finite numbers became others, which they do in one order of additions only.

        Layers of basis vectors multiply sums, so that what is not finite meets in other ways. An
        activation may hide that a sum became too large.
        """
        given = [a for a in self._operands if a is not None and a.dtype.kind in "fc"]
        usual = all(np.isfinite(a).all() for a in given) or op.kind.startswith(("LQ_", "BCQ_"))
        given += [np.array(x) for x in op.attributes().values() if isinstance(x, float)]
        hidden = hasattr(op, "activation") and largest_sum(given) > LARGEST
        return usual and (hidden or not all(np.isfinite(a).all() for a in results))

    def _contents(self, value: Value) -> Array:
        array = self._plan.array(value)
        assert array is not None  # every tensor is kept
        return array


def largest_sum(given: list[Array]) -> float:
    """A bound of any sum of products of the finite numbers."""
    largest = (float(np.abs(a[np.isfinite(a)]).max(initial=1)) for a in given)
    return prod(largest) * max((a.size for a in given), default=0)


def alike(found: Array, wanted: Array) -> bool:
    """Whether two results are the same. Infinite and no number are alike: by another order of
    additions infinities meet or do not.
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, wanted))
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    reach = np.abs(wanted[finite]).max(initial=0)
    return np.allclose(
        found[finite], wanted[finite], rtol=_RELATIVE, atol=_RELATIVE * reach + _TINY
    )
