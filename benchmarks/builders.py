"""Small models made in code: operators one behind the other, on floats or quantized tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import Affine

INT8, UINT8, INT16, INT32 = (
    *(TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32),
)


class Grid(NamedTuple):
    """The integers that stand for a tensor's numbers; several scales are those of ``axis``."""

    dtype: TensorType
    scale: float | Sequence[float]
    zero_point: int = 0
    axis: int = 0

    def give(self, value: Value) -> Value:
        """Let a tensor have it; the tensor itself."""
        scales = np.atleast_1d(np.array(self.scale))
        points = np.full(scales.shape, self.zero_point)
        value.dtype = self.dtype
        value.quantization = Affine.channels(scales, points, self.axis, self.dtype).table()
        return value


class Chain:
    """A model in the making: operators one behind the other, all with random contents."""

    def __init__(self, shape: Sequence[int], grid: Grid | None = None, name: str = "x") -> None:
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))
        self.rng = np.random.default_rng(1)
        self.end = self.input(shape, grid, name)

    def input(self, shape: Sequence[int], grid: Grid | None = None, name: str = "x") -> Value:
        """Add an input."""
        value = self.graph.add_input(name, tuple(shape))
        return value if grid is None else grid.give(value)

    def constant(self, array: Array, grid: Grid | None = None) -> Value:
        """Add a constant."""
        value = self.graph.add_constant(f"c{len(self.graph.values)}", array)
        return value if grid is None else grid.give(value)

    def integers(self, grid: Grid, *shape: int, low: int = -127, high: int = 127) -> Value:
        """Add a constant of random integers."""
        dtype = NUMPY[grid.dtype]
        numbers = self.rng.integers(low, high, shape, np.int64, endpoint=True)
        return self.constant(numbers.astype(dtype), grid)

    def floats(self, *shape: int) -> Value:
        """Add a constant of small random numbers."""
        return self.constant(self.rng.normal(0, 0.1, shape).astype(np.float32))

    def add(
        self,
        cls: type[Op],
        operands: Sequence[Value | None],
        grid: Grid | None = None,
        **given: Any,
    ) -> Value:
        """Append an operator and return its first result."""
        op = cls.from_operands(list(operands), given)
        first = len(self.graph.values)
        self.graph.append(op, *[f"y{first + i}" for i in range(len(op.result_shapes()))])
        if grid is not None:
            for value in op.results:
                grid.give(value)
        self.end = op.results[0]
        return self.end

    def done(self, *outputs: Value) -> Model:
        """End the model with these outputs, else with what came last."""
        self.graph.outputs = list(outputs or [self.end])
        return self.model
