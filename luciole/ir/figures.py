"""Figures of operators: multiply-accumulates, the usual count of work, and parameters."""

from __future__ import annotations

from collections.abc import Callable

from luciole.ir.op import INDEX, Op
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.bidirectional_sequence_lstm import BidirectionalSequenceLSTM
from luciole.ir.ops.bidirectional_sequence_rnn import BidirectionalSequenceRNN
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose
from luciole.ir.ops.gru import GRU
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.rnn import Recurrent
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.ops.unidirectional_sequence_lstm import Memory
from luciole.ir.quantization import is_affine
from luciole.ir.value import Value, element_count


def macs(op: Op) -> int | None:
    """Multiply-accumulates of one run; an unknown extent (a batch) counts as 1.

    None for operators that multiply no matrices. Additions of a bias and taps on padding count as
    they do in common tools: the first not, the second as if they were computed.
    """
    if not op.results:
        return None  # verify says so
    for cls, rule in _RULES.items():
        if isinstance(op, cls):
            return rule(op)
    if op.quant is None:
        return None
    weights = dict(op.named_operands()).get(op.quant.weight)
    if weights is None or not -len(weights.dims) <= op.quant.axis < len(weights.dims):
        return None
    channels = weights.dims[op.quant.axis]
    return _size(op.output) * (_size(weights) // channels if channels else 0)


def _size(value: Value) -> int:
    return element_count(value.dims)


def _batch_matmul(op: BatchMatMul) -> int:
    """Each element of the result is a row of the first operand times a column of the second."""
    inner = op.x.dims[-2 if op.adjoint_lhs else -1] if len(op.x.dims) > 1 else 0
    return _size(op.output) * inner


def _transpose_conv(op: TransposeConv | Conv3DTranspose) -> int:
    """Each element of the input meets all of its channel's weights."""
    data = op.out_backprop if isinstance(op, TransposeConv) else op.input
    channels = op.filter.dims[-1] if op.filter.dims else 0
    return _size(data) * (_size(op.filter) // channels if channels else 0)


def _recurrent(op: Op) -> int:
    """Every matrix once for each step of each sequence, which is the first operand."""
    matrices = [v for v in op.operands if v is not None and v.is_constant and len(v.dims) == 2]
    steps = element_count(op.operands[0].dims[:-1]) if op.operands[0] is not None else 0
    return steps * sum(map(_size, matrices))


def _lq_conv_2d(op: LQConv2D) -> int:
    taps = op.weights_binary.dims[2:4]
    return _size(op.output) * element_count(taps) * op.input_channels


def _lq_fully_connected(op: LQFullyConnected) -> int:
    return _size(op.output) * op.hidden_size


def _bcq_fully_connected(op: BCQFullyConnected) -> int:
    return _size(op.output) * op.weights_hidden_size


def parameters(op: Op) -> dict[Value, int]:
    """The constants that an operator computes with, and the numbers in each.

    Learned levels count as the weights that they stand for; scales, zero points and what tells
    shapes, axes and indices are no parameters.
    """
    rules = (rule for cls, rule in _PACKED.items() if isinstance(op, cls) and op.results)
    packed = next((rule(op) for rule in rules), None)
    if packed is not None:
        slots = dict(op.named_operands())
        found = {slots["weights_binary"]: packed}
        bias = slots.get("bias")
        found |= {} if bias is None else {bias: _size(bias)}
        return {v: n for v, n in found.items() if v is not None and v.is_constant}
    operands = {v for v in op.operands if v is not None and v.is_constant and _is_number(v)}
    return {value: _size(value) for value in operands}


def _is_number(value: Value) -> bool:
    """Whether a constant holds numbers: integers of 32 and 64 bits do where they have a scale."""
    return is_affine(value) or value.dtype not in INDEX


def _lq_conv_2d_weights(op: LQConv2D) -> int:
    dims = op.weights_binary.dims
    return element_count(dims[:1]) * element_count(dims[2:4]) * op.input_channels


def _lq_fully_connected_weights(op: LQFullyConnected) -> int:
    return element_count(op.weights_binary.dims[:1]) * op.hidden_size


def _bcq_weights(op: BCQFullyConnected) -> int:
    return element_count(op.output.dims[:1]) * op.weights_hidden_size


_PACKED: dict[type[Op], Callable[..., int]] = {
    BCQFullyConnected: _bcq_weights,
    LQConv2D: _lq_conv_2d_weights,
    LQFullyConnected: _lq_fully_connected_weights,
}
"""How many weights stand behind an operator's bit planes."""

_RULES: dict[type[Op], Callable[..., int]] = {
    BatchMatMul: _batch_matmul,
    BCQFullyConnected: _bcq_fully_connected,
    LQConv2D: _lq_conv_2d,
    LQFullyConnected: _lq_fully_connected,
    TransposeConv: _transpose_conv,
    Conv3DTranspose: _transpose_conv,
    **dict.fromkeys((Memory, Recurrent, SVDF, GRU), _recurrent),
    BidirectionalSequenceLSTM: _recurrent,
    BidirectionalSequenceRNN: _recurrent,
}
