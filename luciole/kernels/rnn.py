"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.kernels.core.registry import reference
from luciole.kernels.recurrent.operands import named, named_weights
from luciole.kernels.recurrent.rnn_cell import Cell


@reference(RNN, TensorType.FLOAT32)
def rnn(op: RNN, *operands: Array) -> Array:
    """Run one step; the state operand is overwritten."""
    given = named(op, operands)
    weights = named_weights(op, given, op.asymmetric_quantize_inputs)
    cell = Cell(op.activation, given, weights)
    return cell.run(given["input"][None], given["hidden_state"]).squeeze(0)


@reference(UnidirectionalSequenceRNN, TensorType.FLOAT32)
def sequence_rnn(op: UnidirectionalSequenceRNN, *operands: Array) -> Array:
    """Run one step after the other; the state operand is overwritten with the last step's."""
    given = named(op, operands)
    weights = named_weights(op, given, op.asymmetric_quantize_inputs)
    x = given["input"]
    steps = x if op.time_major else x.swapaxes(0, 1)
    result = Cell(op.activation, given, weights).run(steps, given["hidden_state"])
    return result if op.time_major else np.ascontiguousarray(result.swapaxes(0, 1))
