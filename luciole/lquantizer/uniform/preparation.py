"""Bring a float network into the form that is quantized."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, Model, Op, TensorType
from luciole.ir.analysis.weights import has_weights, weight_constant, weights_of
from luciole.ir.passes.fold_constants import FoldConstants
from luciole.ir.passes.fuse_activation import fuse_activation
from luciole.ir.passes.fuse_batch_norm import fuse_batch_norm
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.quantization import is_affine
from luciole.ir.text.common import one_line
from luciole.kernels.core import registry
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.grids import is_float
from luciole.lquantizer.rewrite.integers import weight_slot

LONGEST_NAME = 48
"""Characters of a name in a sentence: converters write names of hundreds."""


def float_network(model: Model) -> Model:
    """Copy a network with activations and batch normalization fused, its constants real numbers.

    Raises QuantizeError where it computes with integers already.
    """
    for value in (v for graph in model.graphs for v in graph.values):
        if value.producer is not None and is_affine(value) and value.dtype != TensorType.FLOAT32:
            name = one_line(value.name)[:LONGEST_NAME]
            raise QuantizeError(
                f"the model is quantized already: tensor {name!r} is {value.dtype.name}"
            )
    work = model.clone()
    graph = work.graph
    for op in graph.ops:
        _make_real(graph, op)
    FoldConstants(registry.evaluate, None)(graph)
    while fuse_batch_norm(graph) or fuse_activation(graph):
        remove_dead(graph)
    remove_dead(graph)
    return work


def _make_real(graph: Graph, op: Op) -> None:
    """Let a layer of integer weights under float inputs have the real numbers."""
    value, found = weight_constant(op) if has_weights(op) else None, None
    if value is not None and value.dtype != TensorType.FLOAT32 and is_float(op.operands[0]):
        found = weights_of(op)
    if found is None or value is None:
        return
    slot, _, axis = weight_slot(op)
    rows = found.values().astype(np.float32).reshape(len(found.codes), *found.shape)
    real = np.ascontiguousarray(np.moveaxis(rows, 0, axis))
    op.set_operand(slot, graph.add_constant(graph.unique_name(f"{value.name}/real"), real))
