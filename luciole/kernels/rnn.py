"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.kernels.core.registry import reference
from luciole.kernels.portable.calls import portable
from luciole.kernels.recurrent import layers_in_c
from luciole.kernels.recurrent.operands import named, named_weights
from luciole.kernels.recurrent.rnn_cell import Cell


@reference(RNN, TensorType.FLOAT32)
def rnn(op: RNN, *operands: Array) -> Array:
    """Run one step; the state operand is overwritten."""
    arrays = named(op, operands)
    weights = named_weights(op, arrays, op.asymmetric_quantize_inputs)
    cell = Cell(op.activation, arrays, weights)
    return cell.run(arrays["input"][None], arrays["hidden_state"]).squeeze(0)


@reference(UnidirectionalSequenceRNN, TensorType.FLOAT32)
def sequence_rnn(op: UnidirectionalSequenceRNN, *operands: Array) -> Array:
    """Run one step after the other; the state operand is overwritten with the last step's."""
    arrays = named(op, operands)
    weights = named_weights(op, arrays, op.asymmetric_quantize_inputs)
    x = arrays["input"]
    steps = x if op.time_major else x.swapaxes(0, 1)
    result = Cell(op.activation, arrays, weights).run(steps, arrays["hidden_state"])
    return result if op.time_major else np.ascontiguousarray(result.swapaxes(0, 1))


portable(RNN, TensorType.FLOAT32)(layers_in_c.rnn)
portable(UnidirectionalSequenceRNN, TensorType.FLOAT32)(layers_in_c.rnn)
