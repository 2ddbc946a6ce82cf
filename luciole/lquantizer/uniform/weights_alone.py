"""Store the weights of a float network in fewer bits: what is between operators stays float."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.passes.fuse_quantization import fuse_weights
from luciole.ir.value import Use
from luciole.lquantizer.calibration.products import weight_rows
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.methods.uniform import nearest
from luciole.lquantizer.report import LayerReport
from luciole.lquantizer.rewrite.integers import runs, set_constant, set_weights
from luciole.lquantizer.schemes import UniformOptions


def store_weights(graph: Graph, options: UniformOptions) -> dict[Op, LayerReport]:
    """Store weights as integers or in half precision, and say so for each layer; operators read
    integers themselves where the scheme lets them.

    Raises QuantizeError where no layer has constant float weights.
    """
    reports = {}
    for op in list(graph.ops):
        value = weight_constant(op) if has_weights(op) else None
        if value is None or value.dtype != TensorType.FLOAT32:
            continue
        reports[op] = LayerReport(op.name, None, options.types.weight_bits)
        reports[op].bytes_before = constant_bytes(op)
        _store(graph, op, value, options)
    if not reports:
        raise QuantizeError("nothing to quantize: no layer has constant float weights")
    if not options.types.explicit:
        fuse_weights(graph, runs)
    return reports


def _store(graph: Graph, op: Op, value: Value, options: UniformOptions) -> None:
    types, data = options.types, value.data
    assert data is not None, "a constant has contents"
    if types.weights == TensorType.FLOAT16:
        use = Use(op, op.operands.index(value))
        set_constant(graph, use, data.astype(np.float16), None)
        return
    rows, channels = weight_rows(op), options.granularity == "channel"
    bias = np.zeros(len(rows), np.float32)  # which stays as it is
    found = nearest(rows, bias, types.most, channels=channels, searched=False)
    set_weights(graph, op, found.codes, found.scales, types.weights)
