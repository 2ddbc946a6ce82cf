"""One compiled kernel for operators that bring integers from one grid to another: by a factor for
those that are not below the zero point, and one for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from luciole.ir import Array, TensorType, Value
from luciole.ir.analysis.fixed_point import multiply, requantized
from luciole.ir.dtypes import tensor_type
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.fixed_point.compiled import Factor, FactorRecord, by_factor, factor_at
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.conversions import integers_at
from luciole.kernels.portable.calls import CCall, Field
from luciole.kernels.portable.integers import factor_fields

ABOVE, BELOW = 0, 1
"""Rows of the factors: of steps that are not negative, and of the others."""


@dataclass(frozen=True)
class Scaling:
    """How integers are brought to another grid: steps from ``zero`` times ``above``, plus
    ``to_zero``, cut off at ``limits``. Steps below 0 have the factor ``below`` and are turned to
    positive ones before it or after it where these are -1.
    """

    zero: int
    to_zero: int
    limits: tuple[int, int]
    above: Factor
    below: Factor
    before: int = 1
    after: int = 1

    def scaled(self, x: Array, dtype: TensorType) -> Array:
        """Bring integers to the other grid, with NumPy."""
        steps = x.astype(np.int64) - self.zero
        bent = self.after * multiply(self.before * steps, *self.below)
        rescaled = np.where(steps >= 0, multiply(steps, *self.above), bent)
        return requantized(rescaled, self.to_zero, self.limits, dtype)


class ScalingRecord(Shared):
    """Elements of a result y and an operand x, and a ``Scaling``."""

    y: int
    x: int
    zero: int
    to_zero: int
    low: int
    high: int
    before: int
    after: int
    factors: int


@cache
def kernel(source: int, to: int) -> jit.Kernel:
    """Make the kernel for integers of two kinds."""

    @jit.kernel
    def scale_integers(r: ScalingRecord) -> None:
        y, x = integers_at(r.y, to), integers_at(r.x, source)
        above, below = factor_at(r.factors, ABOVE), factor_at(r.factors, BELOW)
        zero, to_zero, low, high = r.zero, r.to_zero, r.low, r.high
        before, after = r.before, r.after
        for k in range(r.begin, r.end):
            steps = x[k] - zero
            kept = by_factor(steps, above)
            bent = after * by_factor(before * steps, below)
            y[k] = min(max((kept if steps >= 0 else bent) + to_zero, low), high)

    return scale_integers


def step(scaling: Scaling, x: Array, y: Array) -> NativeStep:
    """Make the step of a scaling of integers x to integers y."""
    memory, (low, high) = Memory(), scaling.limits
    rows = [FactorRecord.of(factor) for factor in (scaling.above, scaling.below)]
    record = ScalingRecord(
        begin=0,
        end=x.size,
        y=reach(y, x.size * y.itemsize),
        x=reach(x, x.size * x.itemsize),
        zero=scaling.zero,
        to_zero=scaling.to_zero,
        low=low,
        high=high,
        before=scaling.before,
        after=scaling.after,
        factors=memory.table(rows, FactorRecord),
    )
    source, to = (int(KINDS[tensor_type(array.dtype)]) for array in (x, y))
    return strided.step(kernel(source, to), record, x.size, memory)


def scaling_in_c(scaling: Scaling, x: Value, y: Value) -> CCall:
    """Call the function of a scaling of integers x to integers y."""
    least, most = scaling.limits
    fields: dict[str, Field] = {"count": element_count(x.dims)}
    fields |= {"zero": scaling.zero, "to_zero": scaling.to_zero, "least": least, "most": most}
    fields |= factor_fields("above_", scaling.above) | factor_fields("below_", scaling.below)
    fields |= {"before": scaling.before, "after": scaling.after}
    name = f"luc_{y.dtype.name.lower()}_scaled_from_{x.dtype.name.lower()}"
    return CCall(name, fields, (x,), (y,), layout="luc_scaling")
