"""How much memory a kernel may take for a result whose shape is known only when it runs."""

from __future__ import annotations

from luciole.ir import Op
from luciole.ir.dtypes import NUMPY
from luciole.ir.rules import settled
from luciole.ir.value import Shape, element_count, shape_text
from luciole.kernels.registry import ExecutionError

MOST_BYTES = 4 << 30
"""A file can ask for any shape by computing it: what is known before is the plan's business."""


def affordable(op: Op, shape: Shape) -> tuple[int, ...]:
    """The shape of an operator's first result. Raises ExecutionError when it was not known before
    the operator ran and takes more than ``MOST_BYTES``.
    """
    extents, result = settled(shape), op.results[0]
    size = element_count(extents) * NUMPY[result.dtype].itemsize
    if size > MOST_BYTES and None in result.shape:
        raise ExecutionError(
            f"a result {shape_text(extents)} of {result.dtype.name} would take {size} bytes, "
            f"{MOST_BYTES} are allowed where the shape is computed"
        )
    return extents
