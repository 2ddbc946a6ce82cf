"""FAKE_QUANT."""

from collections.abc import Iterator

import numpy as np

from luciole.ir.fields import attr, dtype_of, like, operand
from luciole.ir.op import Op
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator


class FakeQuant(Op, code=BuiltinOperator.FAKE_QUANT, options="FakeQuantOptions"):
    """Real numbers rounded to ones that ``num_bits`` can express between ``min`` and ``max``.

    The limits are moved so that zero is one of them. ``narrow_range`` leaves out the lowest level.
    """

    inputs: Value = operand()

    min: float = attr(default=0.0, dump="Min")
    max: float = attr(default=0.0, dump="Max")
    num_bits: int = attr(default=0, dump="NumBits")
    narrow_range: bool = attr(default=False, dump="NarrowRange")

    infer_shape = like("inputs")
    infer_dtype = dtype_of("inputs")

    def verify(self, /) -> Iterator[str]:
        if not 2 <= self.num_bits <= 16:
            yield f"num_bits is {self.num_bits}, 2 to 16 are possible"


def limits(op: FakeQuant) -> tuple[np.float32, np.float32, np.float32]:
    """Compute the limits, moved so that zero is expressible, and the step; in single precision."""
    lowest, highest = np.float32(op.narrow_range), np.float32((1 << op.num_bits) - 1)
    least, most = np.float32(op.min), np.float32(op.max)
    scale = (most - least) / (highest - lowest)
    zero = float(lowest - least / scale)
    point = np.float32(np.floor(min(max(zero, float(lowest)), float(highest)) + 0.5))
    return (lowest - point) * scale, (highest - point) * scale, scale
