"""Models of recurrent operators and of variables, for the table of kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from luciole.ir.quantization import Affine
from luciole.ir.recurrent import LSTM
from luciole.schema.enums import ActivationFunctionType, Padding

Kind = tuple[str, bytes]
"""A name, and a model as a ``.tflite`` file."""

SVDF_SIZES = {"batch": 1, "inputs": 40, "filters": 256, "memory": 10}
"""Those of a keyword spotter."""

LSTM_SIZES = {"batch": 1, "inputs": 28, "cells": 64, "outputs": 64}
TIMES = 28
"""Those of a classifier of digits, row by row."""

Scales = Mapping[str, tuple[float, int]]
"""Scales and zero points by the names of operands; that of the result is ``output``."""


class Layer:
    """A graph of one operator, made operand by operand."""

    def __init__(self, scales: Scales | None = None) -> None:
        self.graph = Model().add_graph(Graph("main"))
        self.operands: dict[str, Any] = {}
        self._scales = scales or {}

    def constant(self, name: str, data: Array, scale: float | None = None) -> None:
        """Give a constant operand."""
        self._take(name, self.graph.add_constant(name, data), scale)

    def variable(
        self, name: str, shape: tuple[int, ...], dtype: TensorType, scale: float | None = None
    ) -> None:
        """Give a state."""
        value = self.graph.add_value(Value(name, dtype, shape))
        value.is_variable = True
        self._take(name, value, scale)

    def between(self, name: str, dtype: TensorType, scale: float, zero_point: int) -> Value:
        """Make a tensor that only says the grid of something in between."""
        value = self.graph.add_value(Value(name, dtype, (0,)))
        value.quantization = Affine.single(scale, zero_point, dtype).table()
        return value

    def input(self, shape: tuple[int, ...], dtype: TensorType) -> None:
        """Give the input."""
        self._take("input", self.graph.add_input("input", shape, dtype))

    def _take(self, name: str, value: Value, scale: float | None = None) -> None:
        self.operands[name] = value
        self._scale(name, value, scale)

    def _scale(self, name: str, value: Value, given: float | None = None) -> None:
        if name in self._scales or given is not None:
            scale, zero_point = self._scales.get(name, (given or 1.0, 0))
            value.quantization = Affine.single(scale, zero_point, value.dtype).table()

    def model(self, cls: type[Op], between: Sequence[Value] = (), **attributes: Any) -> bytes:
        """Finish a model of the operator, as a ``.tflite`` file."""
        op = cls(**self.operands, **attributes)
        op.intermediates = tuple(between)
        self.graph.append(op, "output")
        self._scale("output", op.results[0])
        self.graph.outputs = list(op.results)
        assert self.graph.model is not None
        return to_bytes(self.graph.model, "tflite")


def svdf_float(hybrid: bool = False) -> bytes:
    """Make a model of SVDF in FLOAT32, or with INT8 weights."""
    sizes, random = SVDF_SIZES, np.random.default_rng(1)
    batch, inputs, filters, memory = sizes.values()
    names = ("weights_feature", "weights_time")
    layer = Layer(dict.fromkeys(names, (0.01, 0)) if hybrid else None)
    layer.input((batch, inputs), TensorType.FLOAT32)
    for name, shape in zip(names, ((filters, inputs), (filters, memory)), strict=True):
        steps = random.integers(-127, 128, shape).astype(np.int8)
        layer.constant(name, steps if hybrid else steps.astype(np.float32) / np.float32(100))
    layer.constant("bias", random.normal(0, 1, filters).astype(np.float32))
    layer.variable("state", (batch, filters * memory), TensorType.FLOAT32)
    return layer.model(SVDF, rank_=1, activation=ActivationFunctionType.RELU)


def svdf_integer() -> bytes:
    """Make a model of SVDF in INT8 with a state in INT16."""
    sizes, random = SVDF_SIZES, np.random.default_rng(2)
    batch, inputs, filters, memory = sizes.values()
    scales = {"input": (0.02, 3), "weights_feature": (0.01, 0), "weights_time": (1e-4, 0)}
    layer = Layer(scales | {"bias": (1e-8, 0), "state": (1e-4, 0), "output": (0.03, -20)})
    layer.input((batch, inputs), TensorType.INT8)
    feature = random.integers(-127, 128, (filters, inputs))
    layer.constant("weights_feature", feature.astype(np.int8))
    time = random.integers(-9000, 9000, (filters, memory))
    layer.constant("weights_time", time.astype(np.int16))
    layer.constant("bias", random.integers(-900, 900, filters).astype(np.int32))
    layer.variable("state", (batch, filters * memory), TensorType.INT16)
    return layer.model(SVDF, rank_=1, activation=ActivationFunctionType.RELU)


def lstm_integer(normalized: bool = False) -> bytes:
    """Make a model of UNIDIRECTIONAL_SEQUENCE_LSTM in INT8 with cells in INT16, with or without
    layer normalization.
    """
    sizes, random = LSTM_SIZES, np.random.default_rng(3)
    layer = Layer({"input": (0.02, 5), "output_state": (0.008, -7), "output": (0.008, -7)})
    layer.input((sizes["batch"], TIMES, sizes["inputs"]), TensorType.INT8)
    for name, extents in LSTM.items():
        shape = tuple(sizes[extent] for extent in extents)
        if name.endswith("state"):
            dtype = TensorType.INT16 if name == "cell_state" else TensorType.INT8
            layer.variable(name, shape, dtype, 2.0**-11)
        elif name.endswith("gate_bias"):
            layer.constant(name, random.integers(-4000, 4000, shape).astype(np.int32), 0.01)
        elif name.startswith(("input_to", "recurrent_to")):
            layer.constant(name, random.integers(-127, 128, shape).astype(np.int8), 0.01)
        elif normalized and name.endswith("coefficients"):
            layer.constant(name, random.integers(4000, 30000, shape).astype(np.int16), 2.0**-15)
    grids = [(TensorType.INT16, 0.002, 0)] * 4 + [(TensorType.INT8, 0.008, -7)]
    return layer.model(
        UnidirectionalSequenceLSTM,
        [layer.between(f"between{n}", *grid) for n, grid in enumerate(grids)],
        activation=ActivationFunctionType.TANH,
    )


STREAMED_LAYERS, STREAMED_CHANNELS, STREAMED_TAPS = 6, 40, 5


def streaming() -> bytes:
    """Make a model of convolutions over time that is given one step after the other: variables keep
    the steps before, as a streaming keyword spotter does.
    """
    model, random = Model(), np.random.default_rng(4)
    graph, begin = (model.add_graph(Graph(name)) for name in ("main", "begin"))
    kept = (1, STREAMED_TAPS - 1, 1, STREAMED_CHANNELS)
    zeros = begin.add_constant("zeros", np.zeros(kept, np.float32))
    graph.append(CallOnce(init_graph=begin))
    x = graph.add_input("x", (1, 1, 1, STREAMED_CHANNELS))
    for layer in range(STREAMED_LAYERS):
        begin.append(VarHandle(shared_name=f"layer{layer}"), f"handle{layer}")
        begin.append(AssignVariable(begin.ops[-1].results[0], zeros))
        x = _streamed(graph, x, kept, f"layer{layer}", random)
    graph.outputs = [x]
    return to_bytes(model, "tflite")


def _streamed(
    graph: Graph, x: Value, kept: tuple[int, ...], name: str, random: np.random.Generator
) -> Value:
    """Append a layer over the last steps."""

    def appended(op: Op, what: str) -> Value:
        graph.append(op, f"{name}/{what}")
        return op.results[0]

    def constant(what: str, data: Array) -> Value:
        return graph.add_constant(f"{name}/{what}", data)

    taps = (STREAMED_CHANNELS, STREAMED_TAPS, 1, STREAMED_CHANNELS)
    handle = appended(VarHandle(shared_name=name), "handle")
    before = graph.add_value(Value(f"{name}/before", TensorType.FLOAT32, kept))
    graph.append(ReadVariable(handle), results=[before])
    joined = appended(Concatenation((before, x), axis=1), "joined")
    first = constant("first", np.array([0, 1, 0, 0], np.int32))
    size = constant("size", np.array(kept, np.int32))
    graph.append(AssignVariable(handle, appended(Slice(joined, first, size), "after")))
    weights = constant("weights", random.normal(0, 0.1, taps).astype(np.float32))
    bias = constant("bias", np.zeros(STREAMED_CHANNELS, np.float32))
    layer = Conv2D(joined, weights, bias, padding=Padding.VALID, stride_h=1, stride_w=1)
    layer.activation = ActivationFunctionType.RELU
    return appended(layer, "y")


MODELS: dict[str, Callable[[], bytes]] = {
    "SVDF float": svdf_float,
    "SVDF int8 weights": lambda: svdf_float(hybrid=True),
    "SVDF int8": svdf_integer,
    "LSTM int8": lstm_integer,
    "LSTM int8 normalized": lambda: lstm_integer(normalized=True),
    "streaming with variables": streaming,
}


def kinds() -> Iterator[Kind]:
    """Make every model."""
    for name, make in MODELS.items():
        yield name, make()
