"""Networks with random weights: what benchmarks and ``luciole warmup`` run where accuracy does not
matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Model, Op, TensorType, Value, learned_levels
from luciole.ir.dtypes import NUMPY
from luciole.ir.fields import REQUIRED
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine
from luciole.schema.enums import ActivationFunctionType as Activation

HIGHEST_LEVEL = {1: 0.798, 2: 1.494, 3: 2.051, 4: 2.514}
"""The highest of 2^K evenly spaced levels with the least squared error for normal numbers: Max,
"Quantizing for Minimum Distortion" (1960), table II.
"""


def lq_dense(sizes: Sequence[int], bits: int, rows: int = 1, seed: int = 0) -> Model:
    """Make dense layers with learned levels of ``bits`` bits for inputs and weights: ``sizes`` are
    those of the input and of each layer. TANH follows each but the last, SOFTMAX the last of
    several.
    """
    model, x = _begun((rows, sizes[0]))
    graph, rng = model.graph, np.random.default_rng(seed)
    for place, (n, o) in enumerate(pairwise(sizes)):
        ax, aw, binary, bias = _levels(graph, rng, (o, n), bits)
        op = LQFullyConnected(x, ax, aw, binary, bias)
        op.hidden_size = n
        op.activation = Activation.NONE if place == len(sizes) - 2 else Activation.TANH
        x = _appended(graph, op)
    return _ended(model, x, softmax=len(sizes) > 2)


def dense(sizes: Sequence[int], rows: int = 1, seed: int = 0) -> Model:
    """Make the float network of the same shape; TANH is an operator of its own, as LiteRT wants
    it.
    """
    model, x = _begun((rows, sizes[0]))
    graph, rng = model.graph, np.random.default_rng(seed)
    for place, (n, o) in enumerate(pairwise(sizes)):
        x = _appended(graph, _layer(graph, rng, x, (o, n)))
        if place < len(sizes) - 2:
            x = _appended(graph, Tanh(x))
    return _ended(model, x, softmax=len(sizes) > 2)


def lq_convolution(size: int, channels: int, bits: int, seed: int = 0) -> Model:
    """Make a 3x3 convolution with learned levels and RELU, on a square image with as many channels
    as filters.
    """
    model, x = _begun((1, size, size, channels))
    rng = np.random.default_rng(seed)
    shape = (channels, 3, 3, channels)
    ax, aw, binary, bias = _levels(model.graph, rng, shape, bits)
    op = LQConv2D(x, ax, aw, binary, bias)
    op.stride_h = op.stride_w = 1
    op.input_channels = channels
    op.activation = Activation.RELU
    return _ended(model, _appended(model.graph, op))


def convolutions(size: int = 16, channels: int = 16, seed: int = 0) -> Model:
    """Make a float network of the usual kinds of layers: convolutions of 3x3 and 1x1, depthwise, a
    sum of two branches, pools, dense, softmax.
    """
    model, x = _begun((1, size, size, 3))
    graph, rng = model.graph, np.random.default_rng(seed)
    for cls, shape in (
        (Conv2D, (channels, 3, 3, 3)),
        (DepthwiseConv2D, (1, 3, 3, channels)),
        (Conv2D, (channels, 1, 1, channels)),
    ):
        conv = cls(x, _weights(graph, rng, shape), _weights(graph, rng, (channels,)))
        conv.stride_h = conv.stride_w = 1
        conv.activation = Activation.RELU6
        if isinstance(conv, DepthwiseConv2D):
            conv.depth_multiplier = 1
        before, x = x, _appended(graph, conv)
    x = _appended(graph, Add(before, x))
    for kind in (MaxPool2D, AveragePool2D):
        pool = kind(x)
        pool.stride_h = pool.stride_w = pool.filter_height = pool.filter_width = 2
        x = _appended(graph, pool)
    n = channels * (size // 4) ** 2
    return _ended(model, _appended(graph, _layer(graph, rng, x, (10, n))), softmax=True)


def in_int8(model: Model) -> Model:
    """Make a float network of layers with weights and biases int8, in place: activations from -6 to
    6, probabilities of a softmax from 0 to 1, weights with a scale for each output channel.
    """
    graph = model.graph
    for value in graph.values:
        if not value.is_constant:
            _as_integers(value, np.array([6 / 127]))
    for op in graph.ops:
        if isinstance(op, Softmax):
            _as_integers(op.results[0], np.array([1 / 256]), zero_point=-128)
        if op.quant is None or op.quant.weight is None:
            continue
        operands = dict(op.named_operands())
        weights, bias = operands.get(op.quant.weight), operands.get(op.quant.bias or "")
        if weights is not None and bias is not None:
            scale = _weights_as_integers(weights, op.quant.axis)
            _as_integers(bias, scale * 6 / 127, dtype=TensorType.INT32)
    return model


def alone(cls: type[Op], dtypes: Sequence[TensorType]) -> Model | None:
    """Make a model of one operator on rows of 40 elements, None for one that does not take them:
    that has another number of operands, wants other shapes, or 4 bits, which constants alone have.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    names = [f.name for f in cls.operand_fields() if f.default is REQUIRED]
    types = list(dtypes) * len(names) if len(dtypes) == 1 else list(dtypes)
    if len(types) != len(names) or not NUMPY.keys() >= set(types):
        return None
    values = {n: graph.add_input(n, (1, 40), t) for n, t in zip(names, types, strict=True)}
    try:
        return _ended(model, _appended(graph, cls(**values)))
    except LucioleError:
        return None


def _begun(shape: tuple[int, ...]) -> tuple[Model, Value]:
    model = Model(description="random weights")
    graph = model.add_graph(Graph("main"))
    return model, graph.add_input("x", shape)


def _appended(graph: Graph, op: Op) -> Value:
    graph.append(op, f"{op.kind.lower()}_{len(graph.ops)}")
    return op.results[0]


def _ended(model: Model, result: Value, softmax: bool = False) -> Model:
    if softmax:
        last = Softmax(result)
        last.beta = 1.0
        result = _appended(model.graph, last)
    model.graph.outputs = [result]
    return model


def _layer(
    graph: Graph, rng: np.random.Generator, x: Value, shape: tuple[int, int]
) -> FullyConnected:
    return FullyConnected(x, _weights(graph, rng, shape), _weights(graph, rng, shape[:1]))


def _weights(graph: Graph, rng: np.random.Generator, shape: tuple[int, ...]) -> Value:
    """Draw weights [outputs, ...] that keep the size of their operands."""
    array = rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
    return _constant(graph, array.astype(np.float32))


def _levels(
    graph: Graph, rng: np.random.Generator, shape: tuple[int, ...], bits: int
) -> list[Value]:
    """Make the operands of a learned layer behind its input: bases, bit planes [o, bits, ...],
    bias.
    """
    powers = 2.0 ** np.arange(bits) / (2**bits - 1)
    rows = rng.uniform(0.5, 1.5, (shape[0], 1)) / np.sqrt(np.prod(shape[1:]))
    arrays = (
        (HIGHEST_LEVEL[bits] * powers).astype(np.float32),
        (rows * powers).astype(np.float32),
        learned_levels.pack(rng.integers(0, 2, (shape[0], bits, *shape[1:])) == 1),
        rng.normal(size=shape[0]).astype(np.float32),
    )
    return [_constant(graph, array) for array in arrays]


def _weights_as_integers(weights: Value, axis: int) -> Array:
    """Make weights int8; the scale of each channel."""
    others = tuple(a for a in range(weights.contents.ndim) if a != axis)
    scale: Array = np.abs(weights.contents).max(others) / 127
    _as_integers(weights, scale, axis)
    return scale


def _as_integers(
    value: Value,
    scale: Array,
    axis: int = 0,
    zero_point: int = 0,
    dtype: TensorType = TensorType.INT8,
) -> None:
    """Give a tensor an integer type; a constant is rounded."""
    data = value.data
    if data is not None:
        shape = [-1 if a == axis else 1 for a in range(data.ndim)]
        value.make_constant(np.rint(data / scale.reshape(shape)).astype(NUMPY[dtype]))
    value.dtype = dtype
    points = np.full(len(scale), zero_point)
    value.quantization = Affine.channels(scale, points, axis, dtype).table()


def _constant(graph: Graph, array: Array) -> Value:
    return graph.add_constant(f"constant_{len(graph.values)}", array)
