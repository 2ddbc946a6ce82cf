"""Makes float networks operator by operator, each drawn from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from luciole.ir import Array, Graph, Model, Op, Shape, TensorType, Value
from luciole.ir.ops.activations import Elu, HardSwish, Logistic, Relu, Relu6, Tanh
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.reshape import Reshape
from luciole.schema.enums import ActivationFunctionType as Act

T = TypeVar("T")
_PLAIN = 0.3
_DEEPEST = 5
"""How many times a channel of uneven layers may be halved."""


class Maker:
    """A network in the making, and what was put into it.

    With ``even`` layers that would get channels of uneven sizes get even ones, and compute the
    same.
    """

    def __init__(self, seed: Sequence[int], even: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.even = even
        self.model = Model()
        self.graph: Graph = self.model.add_graph(Graph("main"))
        self.extras: list[Value] = []
        """Tensors that may be outputs beside the last one."""
        self.plain = bool(self.rng.random() < _PLAIN)
        """Whether the network is of operators alone that every form has, C among them."""
        self.uneven = False
        self.cut_off = False
        """Whether a RELU6 stands between uneven layers: only data tell how far they may be lifted.
        """

    # ---------------------------------------------------------------------------------- tensors
    def input(self, shape: Shape, dtype: TensorType = TensorType.FLOAT32) -> Value:
        """Add an input."""
        return self.graph.add_input(f"x{len(self.graph.inputs)}", shape, dtype)

    def constant(self, array: Array) -> Value:
        """Add a constant."""
        return self.graph.add_constant(f"c{len(self.graph.values)}", np.asarray(array))

    def ints(self, *numbers: int) -> Value:
        """Add a constant of indices."""
        return self.constant(np.array(numbers, np.int32))

    def number(self, number: float) -> Value:
        """Add a single number as a constant."""
        return self.constant(np.array(number, np.float32))

    def weights(self, *shape: int, inputs: int = 0) -> Value:
        """Add weights of a layer, drawn so that it keeps the size of ``inputs`` numbers."""
        count = inputs or int(np.prod(shape[1:]))
        return self.constant(self.normal(*shape) / np.float32(count**0.5))

    def normal(self, *shape: int, size: float = 1.0) -> Array:
        """Draw normal float32 numbers."""
        return (size * self.rng.normal(size=shape)).astype(np.float32)

    def factors(self, count: int, cut_off: bool = False) -> Array:
        """Draw powers of two [count] for channels, ones where they are to stay even; those whose
        layer is ``cut_off`` above are not lifted.
        """
        highest = 1 if cut_off else _DEEPEST
        powers = self.rng.integers(-_DEEPEST, highest, count)
        self.uneven, self.cut_off = True, self.cut_off or cut_off
        return np.ones(count, np.float32) if self.even else np.exp2(powers).astype(np.float32)

    # -------------------------------------------------------------------------------- operators
    def add(self, op: Op) -> Value:
        """Append an operator; its first result."""
        return self.parts(op)[0]

    def parts(self, op: Op) -> list[Value]:
        """Append an operator; all of its results."""
        first = len(self.graph.values)
        names = [f"{op.kind.lower()}_{first + k}" for k in range(len(op.result_shapes()))]
        self.graph.append(op, *names)
        return list(op.results)

    def chance(self, share: float) -> bool:
        """Be true that often."""
        return bool(self.rng.random() < share)

    def count(self, least: int, most: int) -> int:
        """Draw a number, both ends among them."""
        return int(self.rng.integers(least, most + 1))

    def one_of(self, several: Sequence[T]) -> T:
        """Draw one of several."""
        return several[int(self.rng.integers(len(several)))]

    # ------------------------------------------------------------------------------- usual parts
    def reshape(self, x: Value, *shape: int) -> Value:
        """Append a RESHAPE."""
        return self.add(Reshape(x, self.ints(*shape), new_shape=shape))

    def dense(self, x: Value, outputs: int, bias: bool = True, activation: Act = Act.NONE) -> Value:
        """Append a dense layer along the last axis, with random weights."""
        inputs = x.dims[-1]
        offsets = self.constant(self.normal(outputs, size=0.3)) if bias else None
        return self.layer(x, self.weights(outputs, inputs), offsets, activation)

    def layer(
        self, x: Value, weights: Value, bias: Value | None, activation: Act = Act.NONE
    ) -> Value:
        """Append a dense layer along the last axis; its weights may be those of another."""
        keep = len(x.dims) > 2
        return self.add(FullyConnected(x, weights, bias, activation=activation, keep_num_dims=keep))

    def activated(self, x: Value) -> Value:
        """Append an activation of any kind."""
        simple = (Relu, Relu6, Tanh, Logistic, Elu, HardSwish)
        kind = self.count(0, 3 if self.plain else 8)
        if kind < len(simple):
            return self.add(simple[kind](x))
        if kind == 6:
            return self.add(LeakyRelu(x, alpha=0.1))
        if kind == 7:
            return self.add(Gelu(x, approximate=self.chance(0.5)))
        slopes = self.constant(self.normal(x.dims[-1], size=0.3))
        return self.add(PRelu(x, slopes))

    def affine(self, x: Value) -> Value:
        """Append a MUL and an ADD by channel, as what normalizes ends."""
        channels = x.dims[-1]
        scaled = self.add(Mul(x, self.constant(1 + self.normal(channels, size=0.3))))
        return self.add(Add(scaled, self.constant(self.normal(channels, size=0.3))))
