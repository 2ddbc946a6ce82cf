"""Find the network in memory that a file's figures are held against."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, LucioleError, Model, Op, TensorType, Value
from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.analysis.weights import stored_constant
from luciole.ir.blockwise import is_coded
from luciole.ir.graph import all_ops
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.value import map_blocks
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.rewrite.integers import set_bias
from luciole.lquantizer.whole.simulate import simulate


def simulation_of(result: Result) -> Model:
    """Return the network of floats that a result's integers were made from, or stand for. Biases
    have the steps of the result's sums; layers whose tensors stay float, and tables, have the
    integers of the result for weights and rows, as kernels round what meets these.
    """
    if result.rounded is None:
        return _with_stored_weights(simulated(result.model), result.model)
    return _with_stored_weights(
        _with_rounded_biases(result.rounded.model, result.model), result.model
    )


def _with_stored_weights(model: Model, written: Model) -> Model:
    """Copy a network with the written one's integers in layers that compute real numbers from
    them.
    """
    stored = {op.name: op for op in all_ops(written.graphs) if _is_hybrid(op)}
    if not stored:
        return model
    made = model.clone()
    for op in all_ops(made.graphs):
        twin = stored.get(op.name)
        if twin is not None and type(twin) is type(op):
            _take_weights(op, twin)
    for graph in made.graphs:
        remove_dead(graph)
    return made


def _with_rounded_biases(model: Model, written: Model) -> Model:
    """Copy a network with biases rounded to the steps of the written layers' sums, which are wide
    where inputs and weights have few steps.
    """
    twins = {op.name: op for op in all_ops(written.graphs) if op.quant and op.quant.bias}
    made = model.clone()
    for op in all_ops(made.graphs):
        twin = twins.get(op.name)
        steps = None if twin is None else steps_of_bias(twin, twin.operands)
        if steps is None or op.quant is None or type(twin) is not type(op):
            continue
        bias = op.given_operands().get(op.quant.bias or "")
        if bias is not None and bias.data is not None and bias.dtype == TensorType.FLOAT32:
            set_bias(op.own_graph, op, np.rint(bias.data / steps) * steps)
    return made


def simulated(model: Model) -> Model:
    """Return a network of integers that computes with floats; one without integers itself."""
    try:
        return simulate(model).model
    except LucioleError:
        return model


def _is_hybrid(op: Op) -> bool:
    """Check whether an operator computes real numbers from integers for weights, or for rows."""
    if stored_constant(op) is None and not isinstance(op, LSTMLayer):
        return False
    is_float = op.results[0].dtype == TensorType.FLOAT32
    return is_float and any(v is not None and v.is_constant and is_coded(v) for v in op.operands)


def _take_weights(op: Op, twin: Op) -> None:
    """Replace a float operator's constants by its twin's integers, which both read alike."""
    for slot, value in enumerate(twin.operands):
        own = op.operands[slot]
        if value is None or own is None or not value.is_constant or value.dtype == own.dtype:
            continue
        op.set_operand(slot, _copy(value, op.own_graph))
    op.version = twin.version
    if isinstance(op, FullyConnected) and isinstance(twin, FullyConnected):
        op.asymmetric_quantize_inputs = twin.asymmetric_quantize_inputs


def _copy(value: Value, graph: Graph) -> Value:
    """Add a constant of another graph, with the scales of its blocks."""
    constant = graph.add_constant(graph.unique_name(value.name), value.contents, value.dtype)
    constant.quantization = value.quantization
    constant.block_tensors = map_blocks(value.block_tensors, lambda v: _copy(v, graph))
    return constant
