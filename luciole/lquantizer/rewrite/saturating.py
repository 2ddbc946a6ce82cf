"""Let QUANTIZE give the least or the largest integer for masks in every runtime."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph
from luciole.ir.analysis.endless import endless_tensors
from luciole.ir.ops.elementwise_binary import Maximum, Minimum
from luciole.ir.ops.quantize import Quantize
from luciole.ir.quantization import affine_of, zero_code


def saturate(graph: Graph) -> None:
    """Bound floats that stand for infinities where a QUANTIZE reads them.

    TFLite's kernels turn x / scale into an int32 before they add the zero point: what lies far
    below becomes the least int32, and a zero point below 0 takes that around to the largest
    integer; far above it is the processor that decides.
    """
    endless = endless_tensors(graph)
    for op in [op for op in graph.ops if isinstance(op, Quantize) and op.input in endless]:
        affine, is_low = affine_of(op.output), -1 in endless[op.input]
        if affine is None or (is_low and zero_code(op.output) >= 0):
            continue
        limit = affine.range[0 if is_low else 1].astype(np.float32).reshape(())
        name = graph.unique_name(f"{op.input.name}/limit")
        bound = (Maximum if is_low else Minimum)(op.input, graph.add_constant(name, limit))
        made = graph.insert_before(op, bound, graph.unique_name(f"{op.input.name}/bounded"))
        op.set_operand(0, made.output)
