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
    made = (simulated(result.model) if result.rounded is None else result.rounded.model).clone()
    twins = {(type(op), op.name): op for op in all_ops(result.model.graphs)}
    pairs = [(op, twins.get((type(op), op.name))) for op in all_ops(made.graphs)]
    known = [(op, twin) for op, twin in pairs if twin is not None]
    if result.rounded is not None:
        for op, twin in known:
            _round_bias(op, twin)
    hybrid = [(op, twin) for op, twin in known if _is_hybrid(twin)]
    for op, twin in hybrid:
        _take_weights(op, twin)
    for graph in made.graphs if hybrid else ():
        remove_dead(graph)
    return made


def _round_bias(op: Op, twin: Op) -> None:
    """Round a layer's bias to the steps of its twin's sums, which are wide where inputs and weights
    have few steps.
    """
    name = op.quant.bias if op.quant is not None else None
    bias = None if name is None else op.given_operands().get(name)
    if bias is None or bias.data is None or bias.dtype != TensorType.FLOAT32:
        return
    steps = steps_of_bias(twin, twin.operands)
    if steps is not None:
        set_bias(op.own_graph, op, np.rint(bias.data / steps) * steps)


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
