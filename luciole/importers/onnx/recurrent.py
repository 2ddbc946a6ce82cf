"""LSTM, GRU and RNN.

A plain LSTM becomes circle's sequence operator, which keeps its state between runs as all variables
do; every other cell stands one step behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.control_flow import joined, slices
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.matrix import matmul
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import activations, elementwise_unary, leaky_relu
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.schema.enums import ActivationFunctionType

LONG = 16
"""Steps from which on an LSTM is one operator."""

Function = Callable[[Value], Value]


@dataclass
class Direction:
    """One direction of a recurrent node: weights [gates units, inputs], the functions of its gates,
    and the states it begins with.
    """

    k: Building
    node: Node
    weights: Value
    recurrent: Value
    biases: tuple[Value, Value]
    functions: list[Function]
    states: list[Value]
    peepholes: list[Value]

    def gates(self, value: Value, count: int) -> list[Value]:
        """Cut the outputs of all gates apart: [batch, gates units]."""
        from luciole.ir.ops.split_v import SplitV

        if count == 1:
            return [value]
        units = self.k.dims(value)[-1] // count
        sizes = self.k.constant(np.full(count, units, np.int32))
        axis = self.k.constant(np.int32(len(value.shape) - 1))
        return self.k.several(SplitV(value, sizes, axis, num_splits=count))

    def both(self, x: Value, h: Value) -> Value:
        """Compute what weights make of the input and of the state, biases included."""
        return self.plus(self.of_input(x), self.of_state(h))

    def of_input(self, x: Value) -> Value:
        """Compute x W^T + b."""
        turned = self.k.transpose(self.weights, (1, 0))
        return self.plus(matmul(self.k, x, turned), self.biases[0])

    def of_state(self, h: Value) -> Value:
        """Compute h R^T + b."""
        turned = self.k.transpose(self.recurrent, (1, 0))
        return self.plus(matmul(self.k, h, turned), self.biases[1])

    def plus(self, x: Value, y: Value) -> Value:
        """Add."""
        return self.k.add(binary.Add(x, y))

    def times(self, x: Value, y: Value) -> Value:
        """Multiply."""
        return self.k.add(binary.Mul(x, y))

    def mixed(self, z: Value, x: Value, y: Value) -> Value:
        """Compute (1 - z) x + z y."""
        rest = self.k.add(binary.Sub(self.k.like(z, 1), z))
        return self.plus(self.times(rest, x), self.times(z, y))


Cell = Callable[[Direction, Value, Sequence[Value]], list[Value]]
"""One step: from an input [batch, inputs] and states [batch, units] to the new states."""


def _rnn(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    return [d.functions[0](d.both(x, states[0]))]


def _gru(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    (h,) = states
    zx, rx, hx = d.gates(d.of_input(x), 3)
    zh, rh, hh = d.gates(d.of_state(h), 3)
    f, g = d.functions
    z, r = f(d.plus(zx, zh)), f(d.plus(rx, rh))
    if d.node.flag("linear_before_reset"):
        return [d.mixed(z, g(d.plus(hx, d.times(r, hh))), h)]
    *_, inner = d.gates(d.of_state(d.times(r, h)), 3)
    return [d.mixed(z, g(d.plus(hx, inner)), h)]


def _lstm(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    h, c = states
    i, o, f, g = d.gates(d.both(x, h), 4)
    gate, cell, out = d.functions
    if d.peepholes:
        pi, po, pf = d.peepholes
        i, f = d.plus(i, d.times(pi, c)), d.plus(f, d.times(pf, c))
    i = gate(i)
    forget = d.k.add(binary.Sub(d.k.like(i, 1), i)) if d.node.flag("input_forget") else gate(f)
    new = d.plus(d.times(forget, c), d.times(i, cell(g)))
    if d.peepholes:
        o = d.plus(o, d.times(po, new))
    return [d.times(gate(o), out(new)), new]


_CELLS: dict[str, tuple[Cell, int, tuple[str, ...], int]] = {
    "RNN": (_rnn, 1, ("Tanh",), 1),
    "GRU": (_gru, 3, ("Sigmoid", "Tanh"), 1),
    "LSTM": (_lstm, 4, ("Sigmoid", "Tanh", "Tanh"), 2),
}
"""A step, the number of gates, the usual functions, and the number of states."""


@rule("RNN", "GRU", "LSTM")
def recurrent(k: Building, node: Node) -> list[Value | None]:
    """Run over a sequence [time, batch, inputs], with ``layout`` 1 [batch, time, inputs]."""
    cell, gates, usual, states = _CELLS[node.kind]
    batched = bool(node.integer("layout", 0))
    x = k.transpose(node[0], (1, 0, 2)) if batched else node[0]
    time, batch, _ = k.dims(x)
    if node.get(4) is not None and k.integers(node[4]) != [time] * batch:
        raise RefusedError("its sequences have other lengths")
    count = k.dims(node[1])[0]
    wanted = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    turns = wanted.get(node.text("direction", "forward"), ())
    if len(turns) != count:
        raise RefusedError(f"weights of {count} directions for {node.text('direction', 'forward')}")
    found = []
    for slot, turned in enumerate(turns):
        d = _direction(k, node, slot, (gates, states, batch), usual)
        sequence = _turned(k, x) if turned else x
        steps, ends = _whole_lstm(d, sequence) or _stepped(d, cell, sequence)
        found.append((_turned(k, steps) if turned else steps, ends))
    return _results(k, found, batched)


def _turned(k: Building, sequence: Value) -> Value:
    return k.add(ReverseV2(sequence, k.constant(np.array([0], np.int32))))


def _results(
    k: Building, found: Sequence[tuple[Value, list[Value | None]]], batched: bool
) -> list[Value | None]:
    """Bring outputs to [time, directions, batch, units], and last states to [directions, ...]."""
    apart = []
    for steps, _ in found:
        time, batch, units = k.dims(steps)
        apart.append(k.reshape(steps, (time, 1, batch, units)))
    whole = joined(k, apart, 1)
    results: list[Value | None] = [k.transpose(whole, (2, 0, 1, 3)) if batched else whole]
    for ends in zip(*(ends for _, ends in found), strict=True):
        parts = [k.reshape(v, (1, *v.shape)) for v in ends if v is not None]
        last = joined(k, parts, 0) if len(parts) == len(found) else None
        results.append(k.transpose(last, (1, 0, 2)) if batched and last is not None else last)
    return results


def _direction(
    k: Building, node: Node, slot: int, sizes: tuple[int, int, int], usual: Sequence[str]
) -> Direction:
    gates, states, batch = sizes
    units = k.dims(node[2])[-1]
    weights, recurrent = (_part(k, node[i], slot) for i in (1, 2))
    bias = node.get(3)
    both = k.like(weights, np.zeros(2 * gates * units)) if bias is None else _part(k, bias, slot)
    biases = tuple(_range(k, both, i * gates * units, gates * units) for i in (0, 1))
    begin = []
    for i in range(states):
        given = node.get(5 + i)
        if given is not None and node.integer("layout", 0):
            given = k.transpose(given, (1, 0, 2))
        zeros = k.filled((batch, units), 0)
        begin.append(k.like(weights, zeros) if given is None else _part(k, given, slot))
    peepholes = []
    if node.kind == "LSTM" and node.get(7) is not None:
        holes = _part(k, node[7], slot)
        peepholes = [_range(k, holes, i * units, units) for i in range(3)]
    functions = _functions(k, node, slot, usual)
    return Direction(
        k, node, weights, recurrent, (biases[0], biases[1]), functions, begin, peepholes
    )


def _part(k: Building, value: Value, slot: int) -> Value:
    dims = k.dims(value)
    if dims[0] == 1:
        return k.reshape(value, dims[1:])
    begin = np.array([slot, *[0] * (len(dims) - 1)], np.int32)
    size = np.array([1, *dims[1:]], np.int32)
    return k.reshape(k.add(Slice(value, k.constant(begin), k.constant(size))), dims[1:])


def _range(k: Building, vector: Value, begin: int, count: int) -> Value:
    places = (k.constant(np.array([n], np.int32)) for n in (begin, count))
    first, size = places
    return k.add(Slice(vector, first, size))


def _functions(k: Building, node: Node, slot: int, usual: Sequence[str]) -> list[Function]:
    """Find the functions of a direction's gates: the usual ones, or those that are named."""
    names = node.texts("activations", list(usual) * (slot + 1))
    names = names[slot * len(usual) : (slot + 1) * len(usual)]
    if len(names) != len(usual):
        raise RefusedError(f"{len(names)} functions for {len(usual)} gates")
    if node.has("activation_alpha") or node.has("activation_beta"):
        raise RefusedError("its functions have parameters")
    clip = node.number("clip", 0.0)

    def limited(x: Value) -> Value:
        low = k.add(binary.Maximum(x, k.like(x, -clip)))
        return k.add(binary.Minimum(low, k.like(x, clip)))

    def function(name: str) -> Function:
        plain = _function(k, name)
        return plain if not clip else lambda x: plain(limited(x))

    return [function(name) for name in names]


def _function(k: Building, name: str) -> Function:
    classes = {
        "relu": activations.Relu,
        "tanh": activations.Tanh,
        "sigmoid": activations.Logistic,
        "elu": activations.Elu,
        "abs": elementwise_unary.Abs,
    }
    cls = classes.get(name.lower())
    if name.lower() == "leakyrelu":
        return lambda x: k.add(leaky_relu.LeakyRelu(x, alpha=0.01))
    if cls is None:
        raise RefusedError(f"its function {name} is not done")
    return lambda x: k.make(cls, (x,))


def _stepped(d: Direction, cell: Cell, sequence: Value) -> tuple[Value, list[Value | None]]:
    """Put one step behind the other."""
    states, outputs = list(d.states), []
    for x in slices(d.k, sequence, 0):
        states = cell(d, x, states)
        outputs.append(d.k.reshape(states[0], (1, *d.k.dims(states[0]))))
    return joined(d.k, outputs, 0), list(states)


def _whole_lstm(d: Direction, sequence: Value) -> tuple[Value, list[Value | None]] | None:
    """Use one operator for a long sequence, None where it does not say what the node says."""
    node, k = d.node, d.k
    time, batch, _ = k.dims(sequence)
    units = k.dims(d.recurrent)[-1]
    named = node.has("activations") or node.has("clip") or node.flag("input_forget")
    begins = any(v.data is None or v.data.any() for v in d.states)
    fixed = all(v.is_constant for v in (d.weights, d.recurrent, *d.biases))
    plain = node.kind == "LSTM" and not named and not begins and fixed and not d.peepholes
    if not plain or time < LONG or node.has_result(2) or sequence.dtype != TensorType.FLOAT32:
        return None
    states = [_variable(k, (batch, units)) for _ in range(2)]
    k.nodes.note_state()
    weights, recurrent = (_in_order(k, v, units) for v in (d.weights, d.recurrent))
    biases = _in_order(k, d.plus(*d.biases), units)
    steps = k.make(
        UnidirectionalSequenceLSTM,
        (sequence, *weights, *recurrent, *[None] * 3, *biases, None, None, *states),
        activation=ActivationFunctionType.TANH,
        time_major=True,
    )
    begin = k.constant(np.array([time - 1, 0, 0], np.int32))
    size = k.constant(np.array([1, batch, units], np.int32))
    return steps, [k.reshape(k.add(Slice(steps, begin, size)), (batch, units)), None]


def _in_order(k: Building, value: Value, units: int) -> list[Value]:
    """Cut ONNX's gates (input, output, forget, cell) apart, in circle's order."""
    data = k.known(value)
    i, o, f, c = (data[slot * units : (slot + 1) * units] for slot in range(4))
    return [k.constant(part) for part in (i, f, c, o)]


def _variable(k: Building, shape: tuple[int, ...]) -> Value:
    value = k.graph.add_value(Value(k.name(f"{k.prefix}/state"), TensorType.FLOAT32, shape))
    value.is_variable = True
    return value
