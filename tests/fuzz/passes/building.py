"""Build random graphs: what surrounds a pattern, and the pieces that patterns are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Logistic, Relu, Relu6, Tanh
from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.ops.elementwise_unary import Abs, Neg
from luciole.ir.unknown_op import UnknownOp
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class Builder:
    """A graph that grows, and the generator that decides."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))
        self.seen: list[Value] = []
        """Results on the way, of which some become outputs too."""

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def pick(self, *choices: int) -> int:
        return int(self.random.choice(choices))

    def input(self, *shape: int) -> Value:
        return self.graph.add_input(self.graph.unique_name("x"), shape)

    def put(self, op: Op) -> Value:
        """Append an operator with one result."""
        result = self.graph.append(op, self.graph.unique_name("t")).output
        self.seen.append(result)
        return result

    def put_all(self, op: Op, count: int) -> tuple[Value, ...]:
        """Append an operator with several results."""
        names = [self.graph.unique_name(f"p{i}") for i in range(count)]
        return self.graph.append(op, *names).results

    def custom(self, code: str, *operands: Value) -> Value:
        """Append a CUSTOM operator of an old converter, with the first operand's shape."""
        op = UnknownOp(BuiltinOperator.CUSTOM, operands, custom_code=code)
        result = Value(self.graph.unique_name("c"), operands[0].dtype, operands[0].shape)
        return self.graph.append(op, results=[self.graph.add_value(result)]).output

    def constant(self, array: Array | float | Sequence[float]) -> Value:
        numbers = np.asarray(array, np.float32)
        return self.graph.add_constant(self.graph.unique_name("c"), numbers)

    def number(self, value: float) -> Value:
        """A constant of one number, in any of the shapes that converters write."""
        shape = ((), (1,))[self.pick(0, 1)]
        return self.constant(np.full(shape, value))

    def ints(self, *numbers: int) -> Value:
        return self.graph.add_constant(
            self.graph.unique_name("i"), np.array(numbers, np.int32).reshape(len(numbers))
        )

    def normal(self, *shape: int, scale: float = 1.0) -> Value:
        return self.constant(self.random.normal(0, scale, shape))

    def positive(self, *shape: int) -> Value:
        return self.constant(self.random.uniform(0.5, 2, shape) * self.random.choice([-1, 1]))

    def channel(self, channels: int, value: Array | None = None) -> Value:
        """A constant with a number for each channel, or one for all."""
        numbers = self.random.uniform(0.5, 2, channels) if value is None else value
        form = self.pick(0, 1, 2)
        shaped = [numbers, numbers.reshape(1, 1, 1, -1), numbers[:1]][form]
        return self.constant(shaped)

    def activation(self) -> ActivationFunctionType:
        kinds = ActivationFunctionType
        return (kinds.NONE, kinds.NONE, kinds.RELU, kinds.RELU6)[self.pick(0, 1, 2, 3)]

    def either(self, kind: type[Binary], x: Value, y: Value) -> Value:
        """An operator whose operands may be exchanged, in some order."""
        return self.put(kind(x, y) if self.chance() else kind(y, x))

    def around(self, value: Value, most: int = 2) -> Value:
        """Append some element-wise operators, which no pattern is made of by chance."""
        for _ in range(self.pick(*range(most + 1))):
            kind = (Relu, Tanh, Logistic, Abs, Neg, Relu6)[self.pick(*range(6))]
            value = self.put(kind(value))
        return value

    def finish(self, *outputs: Value) -> Model:
        """Name the outputs, and sometimes let what is on the way be one, too."""
        ends = list(dict.fromkeys(outputs))
        extra = [v for v in self.seen if v not in ends and v.dtype == TensorType.FLOAT32]
        if extra and self.chance(0.25):
            ends.append(extra[self.pick(*range(len(extra)))])
        if self.chance(0.2):
            self.random.shuffle(ends)
        self.graph.outputs = ends
        return self.model
