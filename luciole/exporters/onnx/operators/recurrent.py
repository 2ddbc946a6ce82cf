"""Recurrent layers. A state begins with what the model's variable holds, in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.exporters.onnx.building import Building, constant_of
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.preparing import why_unlike
from luciole.exporters.onnx.rules import rule
from luciole.ir import Array, Value
from luciole.ir.ops.bidirectional_sequence_lstm import BidirectionalSequenceLSTM
from luciole.ir.ops.bidirectional_sequence_rnn import BidirectionalSequenceRNN
from luciole.ir.ops.gru import GRU, crossed
from luciole.ir.ops.rnn import UnidirectionalSequenceRNN
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.schema.enums import ActivationFunctionType

_GATES = ("input", "output", "forget", "cell")
"""The order of an LSTM's gates in ONNX's weights."""
_PEEPHOLES = ("input", "output", "forget")
_CELLS = {
    ActivationFunctionType.NONE: None,
    ActivationFunctionType.RELU: "Relu",
    ActivationFunctionType.TANH: "Tanh",
}

Operands = Mapping[str, Value]


def _activation(activation: ActivationFunctionType) -> str:
    name = _CELLS.get(activation)
    if name is None:
        raise RefusedError(f"the activation {activation.name} is none of ONNX's recurrent layers")
    return name


def _state(k: Building, value: Value) -> Term | None:
    """Find the first state [1, batch, units], None for zeros."""
    if not value.is_variable:
        return k.add("Unsqueeze", k.of(value), k.ints(0))
    raw = None if value.buffer is None else value.buffer.data
    if raw is None or not raw.any():
        return None
    return k.constant(raw.view(np.float32).reshape(1, *value.dims))


def _time_first(k: Building, value: Value, time_major: bool) -> Term:
    return k.of(value) if time_major else k.add("Transpose", k.of(value), perm=[1, 0, 2])


def _joined(k: Building, arrays: Sequence[Array]) -> Term:
    return k.constant(np.concatenate([np.asarray(a) for a in arrays])[None])


@rule(UnidirectionalSequenceLSTM)
def lstm(k: Building, op: UnidirectionalSequenceLSTM) -> Term:
    y = _lstm(k, op, op.given_operands(), k_input=op.input)
    return y if op.time_major else k.add("Transpose", y, perm=[1, 0, 2])


def _lstm(
    k: Building,
    op: UnidirectionalSequenceLSTM | BidirectionalSequenceLSTM,
    operands: Operands,
    k_input: Value,
    direction: str = "forward",
) -> Term:
    """Write one direction [time, batch, inputs] -> [time, batch, units]."""
    unlike = why_unlike(op.cell_clip, operands)
    if unlike is not None:
        raise RefusedError(unlike)
    cells = _activation(op.activation)
    weights = [_matrix(operands[f"input_to_{gate}_weights"]) for gate in _GATES]
    recurrent = [_matrix(operands[f"recurrent_to_{gate}_weights"]) for gate in _GATES]
    biases = [constant_of(operands[f"{gate}_gate_bias"], "a bias") for gate in _GATES]
    x = _time_first(k, k_input, op.time_major)
    states = [_state(k, operands[name]) for name in ("output_state", "cell_state")]
    zeros = [np.zeros_like(bias) for bias in biases]
    tensors = [_joined(k, a) for a in (weights, recurrent, [*biases, *zeros])]
    options = {"hidden_size": len(biases[0]), "activations": ["Sigmoid", cells, cells]}
    options["direction"] = direction
    y = k.add_all("LSTM", 1, x, *tensors, None, *states, _peepholes(k, operands), **options)[0]
    return k.add("Squeeze", y, k.ints(1))


def _matrix(value: Value) -> Array:
    array = constant_of(value, "weights")
    return np.diag(array) if array.ndim == 1 else array


def _peepholes(k: Building, operands: Operands) -> Term | None:
    if "cell_to_output_weights" not in operands:
        return None
    arrays = [constant_of(operands[f"cell_to_{gate}_weights"], "peepholes") for gate in _PEEPHOLES]
    return _joined(k, arrays)


@rule(BidirectionalSequenceLSTM)
def bidirectional_lstm(k: Building, op: BidirectionalSequenceLSTM) -> list[Term]:
    operands = op.given_operands()
    if any("auxillary" in name for name in operands):
        raise RefusedError("it has an auxiliary input")
    both = []
    for side, direction in (("fw_", "forward"), ("bw_", "reverse")):
        own = {n.removeprefix(side): v for n, v in operands.items() if n.startswith(side)}
        own |= {
            f"{name}_state": operands[f"{side}{name.replace('output', 'activation')}_state"]
            for name in ("output", "cell")
        }
        both.append(_lstm(k, op, own, op.input, direction))
    return _merged(k, both, op.time_major, op.merge_outputs)


def _merged(k: Building, both: list[Term], time_major: bool, merge: bool) -> list[Term]:
    if not time_major:
        both = [k.add("Transpose", term, perm=[1, 0, 2]) for term in both]
    return [k.add("Concat", *both, axis=-1)] if merge else both


def _rnn(
    k: Building, x: Term, operands: Operands, activation: str, direction: str = "forward"
) -> Term:
    bias = constant_of(operands["bias"], "the bias")
    parts = [[constant_of(operands[n], n)] for n in ("weights", "recurrent_weights")]
    tensors = [_joined(k, a) for a in (*parts, [bias, np.zeros_like(bias)])]
    state = _state(k, operands["hidden_state"])
    options = {"hidden_size": len(bias), "activations": [activation], "direction": direction}
    y = k.add_all("RNN", 1, x, *tensors, None, state, **options)[0]
    return k.add("Squeeze", y, k.ints(1))


@rule(UnidirectionalSequenceRNN)
def rnn(k: Building, op: UnidirectionalSequenceRNN) -> Term:
    x = _time_first(k, op.input, op.time_major)
    y = _rnn(k, x, op.given_operands(), _activation(op.activation))
    return y if op.time_major else k.add("Transpose", y, perm=[1, 0, 2])


@rule(BidirectionalSequenceRNN)
def bidirectional_rnn(k: Building, op: BidirectionalSequenceRNN) -> list[Term]:
    operands = op.given_operands()
    if any("aux" in name for name in operands):
        raise RefusedError("it has an auxiliary input")
    x, both = _time_first(k, op.input, op.time_major), []
    for side, direction in (("fw_", "forward"), ("bw_", "reverse")):
        own = {n.removeprefix(side): v for n, v in operands.items() if n.startswith(side)}
        both.append(_rnn(k, x, own, _activation(op.activation), direction))
    return _merged(k, both, op.time_major, op.merge_outputs)


@rule(GRU)
def gru(k: Building, op: GRU) -> Term:
    """Keep the order of gates, which is ONNX's; the state's bias is within the reset gate."""
    pairs = [
        (op.hidden_hidden, op.hidden_hidden_bias),
        (op.hidden_input, op.hidden_input_bias),
    ]
    hidden, inner = op.hidden_hidden.shape, op.hidden_input.shape
    if not crossed(hidden, inner, op.input.shape[2], op.state.shape[1]):
        pairs.reverse()
    (weights, _), (recurrent, _) = pairs
    biases = [
        np.zeros(w.dims[0], np.float32) if b is None else constant_of(b, "a bias") for w, b in pairs
    ]
    arrays = [[constant_of(weights, "weights")], [constant_of(recurrent, "weights")], biases]
    tensors = [_joined(k, a) for a in arrays]
    state = _state(k, op.state)
    options = {"hidden_size": recurrent.dims[1], "linear_before_reset": 1}
    y, last = k.add_all("GRU", 2, k.of(op.input), *tensors, None, state, **options)
    return k.add("Squeeze", y, k.ints(1)) if op.return_sequences else last
