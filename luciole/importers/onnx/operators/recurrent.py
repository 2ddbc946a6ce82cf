"""LSTM, GRU and RNN: a function of their operands, as in ONNX.

Up to MOST_STEPS steps stand one behind the other, longer sequences are a WHILE. Circle's sequence
operators are no form of them: their states are variables, which last from run to run in every
runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.control_flow import MOST_STEPS, joined, packed, slices
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.sequences import Looped, Made, Turn, repeated, zeros
from luciole.importers.onnx.operators.shape import with_axes, without_axes
from luciole.importers.onnx.rules import rule
from luciole.ir import Op, TensorType, Value
from luciole.ir.ops import activations, elementwise_unary, leaky_relu
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split


@dataclass(frozen=True)
class Direction:
    """One direction of a recurrent node, in the graph that ``k`` builds. All steps have the same
    constants.
    """

    k: Building
    node: Node
    weights: Value
    """Of the input, [gates units, inputs]."""
    recurrent: tuple[Value, ...]
    """Of the state, [gates units, units]: one matrix for all gates, or one for those of each
    product.
    """
    bias: Value
    """Added to the input's products, [gates units]."""
    state_bias: Value | None
    """Added to the state's products, None where ``bias`` has it."""
    functions: tuple[str, ...]
    states: tuple[Value, ...]
    """States before the first step, [batch, units] each."""
    peepholes: tuple[Value, ...]
    axis: Value
    """The axis of gates."""
    one: Value

    def inside(self, k: Building) -> Direction:
        """Return the same direction for the graph that ``k`` builds, whose states are handed to
        it. Raises RefusedError for weights that are computed.
        """

        def moved(value: Value) -> Value:
            return k.held(self.k.known(value), dtype=value.dtype)

        return replace(
            self,
            k=k,
            weights=moved(self.weights),
            recurrent=tuple(map(moved, self.recurrent)),
            bias=moved(self.bias),
            state_bias=None if self.state_bias is None else moved(self.state_bias),
            peepholes=tuple(map(moved, self.peepholes)),
            axis=moved(self.axis),
            one=moved(self.one),
        )

    def gates(self, value: Value, count: int) -> list[Value]:
        """Cut the outputs of gates apart: [batch, gates units]."""
        if count == 1:
            return [value]
        return self.k.several(Split(self.axis, value, num_splits=count))

    def of_input(self, x: Value) -> Value:
        """Compute x W^T + b, of all steps at once: [time, batch, gates units]."""
        return self._product(x, self.weights, self.bias)

    def of_state(self, h: Value, part: int = 0) -> Value:
        """Compute h R^T, and + b where the input's products have no part of it."""
        return self._product(h, self.recurrent[part], self.state_bias)

    def _product(self, x: Value, weights: Value, bias: Value | None) -> Value:
        if x.dtype == weights.dtype == TensorType.FLOAT32:
            keep = len(x.shape) != 2
            product = self.k.add(FullyConnected(x, weights, None, keep_num_dims=keep))
        else:
            product = matmul(self.k, x, self.k.transpose(weights, (1, 0)))
        return product if bias is None else self.k.add(binary.Add(product, bias))

    def activated(self, slot: int, x: Value, *, clipped: bool = True) -> Value:
        """Apply a function of the node, to numbers within its ``clip``."""
        clip = self.node.number("clip", 0.0)
        if clip and clipped:
            low = self.k.add(binary.Maximum(x, self.k.like(x, -clip)))
            x = self.k.add(binary.Minimum(low, self.k.like(x, clip)))
        return _function(self.k, self.functions[slot], x)

    def plus(self, x: Value, y: Value) -> Value:
        """Add; what is 0 throughout is left out."""
        if x.shape == y.shape and (_is_zero(x) or _is_zero(y)):
            return y if _is_zero(x) else x
        return self.k.add(binary.Add(x, y))

    def times(self, x: Value, y: Value) -> Value:
        """Multiply; nothing is computed of what is 0 throughout."""
        if x.shape == y.shape and (_is_zero(x) or _is_zero(y)):
            return x if _is_zero(x) else y
        return self.k.add(binary.Mul(x, y))

    def rest(self, x: Value) -> Value:
        """Compute 1 - x."""
        return self.k.add(binary.Sub(self.one, x))


def _is_zero(value: Value) -> bool:
    return value.data is not None and not value.data.any()


Cell = Callable[[Direction, Value, Sequence[Value]], list[Value]]
"""One step: from the input's products [batch, gates units] and states [batch, units] to the new
states, of which the first is the output.
"""


def _rnn(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    return [d.activated(0, d.plus(x, d.of_state(states[0])))]


def _gru(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    (h,) = states
    zx, rx, hx = d.gates(x, 3)
    whole = len(d.recurrent) == 1
    zh, rh, *inner = d.gates(d.of_state(h), 3 if whole else 2)
    z, r = d.activated(0, d.plus(zx, zh)), d.activated(0, d.plus(rx, rh))
    seen = d.times(r, inner[0]) if whole else d.of_state(d.times(r, h), 1)
    new = d.activated(1, d.plus(hx, seen))
    return [d.plus(d.times(d.rest(z), new), d.times(z, h))]


def _lstm(d: Direction, x: Value, states: Sequence[Value]) -> list[Value]:
    """Compute a step as onnxruntime does, which clips the operands of gates and not the cell before
    the output.
    """
    h, c = states
    i, o, f, g = d.gates(d.plus(x, d.of_state(h)), 4)
    if d.peepholes:
        pi, _, pf = d.peepholes
        i, f = d.plus(i, d.times(pi, c)), d.plus(f, d.times(pf, c))
    i = d.activated(0, i)
    forget = d.rest(i) if d.node.flag("input_forget") else d.activated(0, f)
    new = d.plus(d.times(forget, c), d.times(i, d.activated(1, g)))
    if d.peepholes:
        o = d.plus(o, d.times(d.peepholes[1], new))
    return [d.times(d.activated(0, o), d.activated(2, new, clipped=False)), new]


_CELLS: dict[str, tuple[Cell, int, tuple[str, ...], int]] = {
    "RNN": (_rnn, 1, ("Tanh",), 1),
    "GRU": (_gru, 3, ("Sigmoid", "Tanh"), 1),
    "LSTM": (_lstm, 4, ("Sigmoid", "Tanh", "Tanh"), 2),
}
"""A step, the number of gates, the usual functions, and the number of states."""

_TURNS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Which of a node's directions go backwards."""


@rule("RNN", "GRU", "LSTM")
def recurrent(k: Building, node: Node) -> list[Value | None]:
    """Run over a sequence [time, batch, inputs], with ``layout`` 1 [batch, time, inputs]."""
    cell, gates, usual, states = _CELLS[node.kind]
    batched = bool(node.integer("layout", 0))
    x = k.transpose(node[0], (1, 0, 2)) if batched else node[0]
    time, batch, _ = x.shape
    if node.get(4) is not None and k.integers(node[4]) != [time] * (batch or 0):
        raise RefusedError("its sequences have other lengths")
    count = k.dims(node[1])[0]
    turns = _TURNS.get(node.text("direction", "forward"), ())
    if len(turns) != count:
        raise RefusedError(f"weights of {count} directions for {node.text('direction', 'forward')}")
    directions = []
    for slot, turned in enumerate(turns):
        d = _direction(k, node, slot, (gates, states), usual, x)
        steps, ends = _run(d, cell, _turned(k, x) if turned else x)
        directions.append((_turned(k, steps) if turned else steps, ends))
    return _results(k, directions, batched)


def _turned(k: Building, sequence: Value) -> Value:
    return k.add(ReverseV2(sequence, k.constant(np.array([0], np.int32))))


def _run(d: Direction, cell: Cell, sequence: Value) -> tuple[Value, list[Value]]:
    """Compute all steps [time, batch, units], and the last states."""
    sums, states = d.of_input(sequence), list(d.states)
    time, batch, *_ = sums.shape
    if time is None or batch is None or time > MOST_STEPS:
        return _in_while(d, cell, sums)
    outputs = []
    for x in slices(d.k, sums, 0):
        states = cell(d, x, states)
        outputs.append(states[0])
    return packed(d.k, outputs, 0), states


def _in_while(d: Direction, cell: Cell, sums: Value) -> tuple[Value, list[Value]]:
    def step(k: Building, turn: Turn) -> Made:
        states = cell(d.inside(k), turn.elements[0], turn.states)
        return Made(states, states[:1])

    states, (outputs,) = repeated(d.k, Looped([sums], d.states), step)
    return outputs, states


def _results(
    k: Building, directions: Sequence[tuple[Value, list[Value]]], batched: bool
) -> list[Value | None]:
    """Bring outputs to [time, directions, batch, units], and last states to [directions, ...]."""
    apart = []
    for steps, _ in directions:
        apart.append(with_axes(k, steps, [1]))
    whole = joined(k, apart, 1)
    results: list[Value | None] = [k.transpose(whole, (2, 0, 1, 3)) if batched else whole]
    for ends in zip(*(ends for _, ends in directions), strict=True):
        last = joined(k, [k.reshape(v, (1, *v.shape)) for v in ends], 0)
        results.append(k.transpose(last, (1, 0, 2)) if batched else last)
    return results


def _direction(
    k: Building, node: Node, slot: int, sizes: tuple[int, int], usual: Sequence[str], x: Value
) -> Direction:
    gates, states = sizes
    units = k.dims(node[2])[-1]
    weights, recurrent = (_part(k, node[i], slot) for i in (1, 2))
    resets_first = node.kind == "GRU" and not node.flag("linear_before_reset")
    holes = node.get(7) if node.kind == "LSTM" else None
    return Direction(
        k,
        node,
        weights,
        tuple(_rows(k, recurrent, units, (0, 2, 3) if resets_first else (0, gates))),
        *_biases(k, node, slot, weights),
        _functions(node, slot, usual),
        tuple(_state(k, node, slot, 5 + i, x) for i in range(states)),
        () if holes is None else tuple(_rows(k, _part(k, holes, slot), units, range(4))),
        axis=k.constant(np.int32(1)),
        one=k.like(weights, 1),
    )


def _biases(k: Building, node: Node, slot: int, weights: Value) -> tuple[Value, Value | None]:
    """Add up the biases of the products of input and state, unless a gate comes between."""
    size, biases = k.dims(weights)[0], node.get(3)
    both = k.like(weights, np.zeros(2 * size)) if biases is None else _part(k, biases, slot)
    of_input, of_state = _rows(k, both, size, range(3))
    if node.kind == "GRU" and node.flag("linear_before_reset"):
        return of_input, of_state
    return k.add(binary.Add(of_input, of_state)), None


def _state(k: Building, node: Node, slot: int, operand: int, x: Value) -> Value:
    """Return the state that the first step begins with: zeros where none is given."""
    initial = node.get(operand)
    if initial is None:
        return zeros(k, node[1], [(x, 1), (node[2], 2)])
    return _part(k, k.transpose(initial, (1, 0, 2)) if node.flag("layout") else initial, slot)


def _part(k: Building, value: Value, slot: int) -> Value:
    """Return the part of a tensor that belongs to one direction."""
    if value.shape[0] != 1:
        rest = len(value.shape) - 1
        begin, size = np.array([slot, *[0] * rest], np.int32), np.array([1, *[-1] * rest], np.int32)
        value = k.add(Slice(value, k.constant(begin), k.constant(size)))
    return without_axes(k, value, [0])


def _rows(k: Building, value: Value, units: int, cuts: Sequence[int]) -> list[Value]:
    """Cut rows [gates units, ...] apart, at places that count gates."""
    if len(cuts) == 2:
        return [value]
    rest = k.dims(value)[1:]
    rows = []
    for first, end in pairwise(cuts):
        begin = np.array([first * units, *[0] * len(rest)], np.int32)
        size = np.array([(end - first) * units, *rest], np.int32)
        rows.append(k.add(Slice(value, k.constant(begin), k.constant(size))))
    return rows


def _functions(node: Node, slot: int, usual: Sequence[str]) -> tuple[str, ...]:
    """Find the names of the functions of a direction's gates: the usual ones, or those given."""
    names = node.texts("activations", list(usual) * (slot + 1))
    names = names[slot * len(usual) : (slot + 1) * len(usual)]
    if len(names) != len(usual):
        raise RefusedError(f"{len(names)} functions for {len(usual)} gates")
    if node.has("activation_alpha") or node.has("activation_beta"):
        raise RefusedError("its functions have parameters")
    return tuple(names)


_FUNCTIONS: dict[str, type[Op]] = {
    "relu": activations.Relu,
    "tanh": activations.Tanh,
    "sigmoid": activations.Logistic,
    "elu": activations.Elu,
    "abs": elementwise_unary.Abs,
}


def _function(k: Building, name: str, x: Value) -> Value:
    if name.lower() == "leakyrelu":
        return k.add(leaky_relu.LeakyRelu(x, alpha=0.01))
    cls = _FUNCTIONS.get(name.lower())
    if cls is None:
        raise RefusedError(f"its function {name} is not done")
    return k.make(cls, (x,))
