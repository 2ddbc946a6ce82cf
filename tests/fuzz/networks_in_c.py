"""Small networks of layers that have a C form, whose constants may be hostile: the largest numbers,
denormals, any bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import luciole
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops.activations import Logistic, Relu, Relu6, Tanh
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.kernels.core import evaluation
from luciole.lquantizer.errors import QuantizeError
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.fuzz.compiled import LARGEST, largest_sum
from tests.fuzz.rewriting.schemes import schemes_of
from tests.lq_support import packed

Rng = np.random.Generator

HOSTILE = (3e38, -3e38, 1e-45, -1e-40, 1e30, -1e30, 1e19, -1e19, 1e-30, 0.0, -0.0, 1e9)
SPECIAL = (np.nan, np.nan, np.nan, np.inf, -np.inf, -0.0, 1e-40)
_ACTIVATIONS = (Act.NONE, Act.RELU, Act.RELU6, Act.RELU_N1_TO_1)


class _Growing:
    """A chain of layers: each reads the one before, some an earlier one of its shape, too."""

    def __init__(self, rng: Rng) -> None:
        self.rng, self.model = rng, Model()
        self.graph = self.model.add_graph(Graph("main"))
        height, width, channels = rng.integers(1, 8, 3).tolist()
        self.last = self.graph.add_input("x", (1, height, width, channels))
        self._earlier = [self.last]

    def append(self, op: Op) -> None:
        """Put an operator behind the chain."""
        self.graph.append(op, f"y{len(self.graph.ops)}")
        self.last = op.results[0]
        self._earlier.append(self.last)

    def floats(self, *shape: int) -> Value:
        """Add a constant."""
        array = self.rng.normal(size=shape).astype(np.float32)
        return self.graph.add_constant(f"c{len(self.graph.values)}", array)

    @property
    def channels(self) -> int:
        """The channels of the last result."""
        return self.last.dims[3]

    @property
    def activation(self) -> Act:
        """A fused activation."""
        return _ACTIVATIONS[int(self.rng.integers(len(_ACTIVATIONS)))]

    @property
    def fused(self) -> dict[str, Any]:
        """What layers with windows share, and a fused activation."""
        same = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1}
        return {**same, "activation": self.activation}

    @property
    def other(self) -> Value:
        """An earlier tensor of the last result's shape."""
        alike = [value for value in self._earlier if value.dims == self.last.dims]
        return alike[int(self.rng.integers(len(alike)))]

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of a window."""
        height, width = self.rng.integers(1, 4, 2).tolist()
        return height, width


def _conv(chain: _Growing) -> Op:
    o = int(chain.rng.integers(1, 9))
    weights = chain.floats(o, *chain.size, chain.channels)
    return Conv2D(chain.last, weights, chain.floats(o), **chain.fused)


def _depthwise(chain: _Growing) -> Op:
    weights, bias = chain.floats(1, *chain.size, chain.channels), chain.floats(chain.channels)
    return DepthwiseConv2D(chain.last, weights, bias, depth_multiplier=1, **chain.fused)


def _dense(chain: _Growing) -> Op:
    o = int(chain.rng.integers(1, 9))
    weights = chain.floats(o, chain.channels)
    return FullyConnected(
        chain.last, weights, chain.floats(o), activation=chain.activation, keep_num_dims=True
    )


def _pool(chain: _Growing) -> Op:
    cls, (height, width) = (MaxPool2D, AveragePool2D)[int(chain.rng.integers(2))], chain.size
    return cls(chain.last, filter_height=height, filter_width=width, **chain.fused)


def _arithmetic(chain: _Growing) -> Op:
    cls = (Add, Sub, Mul)[int(chain.rng.integers(3))]
    return cls(chain.last, chain.other, activation=chain.activation)


def _extreme(chain: _Growing) -> Op:
    return (Maximum, Minimum)[int(chain.rng.integers(2))](chain.last, chain.other)


def _activation(chain: _Growing) -> Op:
    return (Relu, Relu6, Tanh, Logistic)[int(chain.rng.integers(4))](chain.last)


def _levels(chain: _Growing) -> Op:
    """A convolution of learned levels."""
    rng, channels, (height, width) = chain.rng, chain.channels, chain.size
    o, kx, kw = rng.integers((1, 1, 1), (9, 4, 4)).tolist()
    signs = rng.random((o, kw * height * width, channels)) < 0.5
    binary = packed(signs).reshape(o, kw, height, width, -1)
    return LQConv2D(
        chain.last,
        chain.floats(kx),
        chain.floats(o, kw),
        chain.graph.add_constant("binary", binary),
        chain.floats(o) if rng.random() < 0.7 else None,
        chain.floats(o) if rng.random() < 0.4 else None,
        input_channels=channels,
        **chain.fused,
    )


_LAYERS: tuple[Callable[[_Growing], Op], ...] = (
    *(_conv, _depthwise, _pool, _arithmetic, _extreme, _extreme, _activation, _dense),
)
_BEHIND_LEVELS = (_extreme, _activation)
"""What brings differences no further apart."""


def network(rng: Rng) -> Model:
    """Make a few layers, in half of the cases with learned levels in the end."""
    chain = _layers(rng)
    if rng.random() < 0.5:
        chain.append(_levels(chain))
        if rng.random() < 0.5:
            chain.append(_BEHIND_LEVELS[int(rng.integers(2))](chain))
    chain.graph.outputs = [chain.last]
    return chain.model


def _layers(rng: Rng) -> _Growing:
    chain = _Growing(rng)
    for _ in range(int(rng.integers(1, 5))):
        chain.append(_LAYERS[int(rng.integers(len(_LAYERS)))](chain))
    return chain


def quantized_network(rng: Rng, seed: int) -> Model:
    """Make a few layers, and quantize them by a scheme of any; they stay floats where it finds
    nothing to quantize.
    """
    chain = _layers(rng)
    chain.append((_conv, _depthwise, _dense)[int(rng.integers(3))](chain))
    chain.graph.outputs = [chain.last]
    schemes = schemes_of(seed, int(rng.integers(1 << 30)))
    scheme = schemes[int(rng.integers(len(schemes)))]
    records = {"x": rng.normal(size=(8, *chain.graph.inputs[0].dims[1:])).astype(np.float32)}
    choices = {"proof": False, **scheme.choices}
    try:
        return luciole.quantize(chain.model, records if scheme.has_data else None, **choices).model
    except QuantizeError:
        return chain.model


def spoil(rng: Rng, model: Model) -> None:
    """Write hostile numbers into half of a model's float constants."""
    for value in model.graph.values:
        data = value.data
        if data is None or data.dtype != np.float32 or not data.size or rng.random() < 0.5:
            continue
        spoiled = data.copy().reshape(-1)
        for place in rng.integers(0, data.size, 3):
            bits = rng.integers(0, 2**32, dtype=np.uint32)
            spoiled[place] = rng.choice(HOSTILE) if rng.random() < 0.7 else bits.view(np.float32)
        value.set_data(spoiled.reshape(data.shape))


def spoil_input(rng: Rng, array: Array) -> None:
    """Write numbers that are none, or infinite, into an input of floats."""
    if array.dtype == np.float32 and array.size:
        array.reshape(-1)[rng.integers(0, array.size, 2)] = rng.choice(SPECIAL, 2)


def may_overflow(model: Model, given: Mapping[str, Array]) -> bool:
    """Whether sums on the way may leave the floats: then infinities meet, or do not, by the order
    of additions.
    """
    arrays: dict[Value, Array | None] = {v: v.data for v in model.graph.values}
    arrays |= {v: given[v.name] for v in model.graph.inputs}
    for op in model.graph.ops:
        operands = [None if v is None else arrays[v] for v in op.operands]
        floats = [a for a in operands if a is not None and a.dtype == np.float32]
        if hasattr(op, "activation") and largest_sum(floats) > LARGEST:
            return True
        arrays |= dict(zip(op.results, evaluation.computed(op, operands), strict=True))
    return False
