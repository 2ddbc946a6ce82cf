"""One LQ_CONV_2D layer as plain arrays, and the formula of the file format as an oracle.

The oracle walks over output pixels and kernel positions, counts differing signs with plain NumPy
and shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from luciole.ir import Array, Model
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.lq_support import ACTIVATE, input_signs, packed
from tests.support import one_op, run_native, run_reference

CONSTANT = (1, 2, 3, 4, 5)


@dataclass
class ConvLayer:
    """One layer as plain arrays; ``signs`` [o, kw, kernel height, kernel width, c] of True (+1) and
    False (-1), ``strides`` and ``dilations`` of (height, width).
    """

    input_scales: Array
    weights_scales: Array
    signs: Array
    bias: Array | None = None
    weights_offsets: Array | None = None
    input_offset: float = 0.0
    activation: Act = Act.NONE
    padding: Padding = Padding.SAME
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)

    def operands(self, x: Array) -> list[Array | None]:
        o, kw, kernel_h, kernel_w, c = self.signs.shape
        binary = packed(self.signs.reshape(o, -1, c)).reshape(o, kw, kernel_h, kernel_w, -1)
        basis = [self.input_scales, self.weights_scales, binary]
        return [x, *basis, self.bias, self.weights_offsets]

    def attributes(self) -> dict[str, Any]:
        return {
            "padding": self.padding,
            "stride_h": self.strides[0],
            "stride_w": self.strides[1],
            "dilation_h_factor": self.dilations[0],
            "dilation_w_factor": self.dilations[1],
            "input_channels": self.signs.shape[-1],
            "input_offset": self.input_offset,
            "activation": self.activation,
        }

    def model(self, x: Array) -> Model:
        return one_op(LQConv2D, self.operands(x), CONSTANT, **self.attributes())

    def reference(self, x: Array) -> Array:
        (y,) = run_reference(LQConv2D, self.operands(x), CONSTANT, **self.attributes())
        return y

    def native(self, x: Array) -> Array:
        """The compiled kernel's result; fails where the reference would have run instead."""
        return run_native(self.model(x), x)


def taps(layer: ConvLayer, axis: int, size: int) -> list[list[tuple[int, int]]]:
    """For every output position of an axis (0 height, 1 width) the taps inside the image: which
    tap, and which input it meets.
    """
    stride, dilation = layer.strides[axis], layer.dilations[axis]
    kernel = layer.signs.shape[2 + axis]
    span = (kernel - 1) * dilation + 1
    out, before = -(-(size - span + 1) // stride), 0
    if layer.padding == Padding.SAME:
        out = -(-size // stride)
        before = max((out - 1) * stride + span - size, 0) // 2
    meets = [[(k, o * stride - before + k * dilation) for k in range(kernel)] for o in range(out)]
    return [[(k, at) for k, at in row if 0 <= at < size] for row in meets]


def windows(layer: ConvLayer, x: Array) -> Iterator[tuple[tuple[int, ...], list[Any]]]:
    """Every output pixel with its taps inside: (tap row, tap column, input row, input column)."""
    rows, columns = (taps(layer, axis, x.shape[1 + axis]) for axis in (0, 1))
    for image in range(len(x)):
        for r, down in enumerate(rows):
            for c, across in enumerate(columns):
                inside = [(ky, kx, y, x) for ky, y in down for kx, x in across]
                yield (image, r, c), inside


def oracle(layer: ConvLayer, x: Array) -> Array:
    """The formula of the file format, in float64, sums over the taps inside alone.

    y_o = act(sum_ij ax_i aw_oj (n - 2 differing) + input_offset sum_k w_ok
              + weights_offset_o sum_i ax_i (2 ones - n) + bias_o)
    """
    o, _, _, _, c = layer.signs.shape
    ax, aw = layer.input_scales.astype(np.float64), layer.weights_scales.astype(np.float64)
    xb = input_signs(x.reshape(-1, c), layer.input_scales, layer.input_offset)
    xb = xb.reshape(*x.shape[:3], len(ax), c)
    offsets = np.zeros(o) if layer.weights_offsets is None else layer.weights_offsets
    plus_minus = np.where(layer.signs, 1.0, -1.0)
    weights = np.einsum("ojyxc,oj->oyxc", plus_minus, aw) + offsets[:, None, None, None]
    rows, columns = (len(taps(layer, axis, x.shape[1 + axis])) for axis in (0, 1))
    result = np.zeros((len(x), rows, columns, o)) + (0.0 if layer.bias is None else layer.bias)
    for place, inside in windows(layer, x):
        n = len(inside) * c
        differing, ones = np.zeros((len(ax), o, aw.shape[1]), int), np.zeros(len(ax), int)
        for ky, kx, row, column in inside:
            signs = xb[place[0], row, column]
            differing += (signs[:, None, None] != layer.signs[None, :, :, ky, kx]).sum(-1)
            ones += signs.sum(-1)
            result[place] += layer.input_offset * weights[:, ky, kx].sum(-1)
        result[place] += np.einsum("i,oj,ioj->o", ax, aw, n - 2 * differing)
        result[place] += offsets * (ax * (2 * ones - n)).sum()
    return ACTIVATE[layer.activation](result)


def random_conv(
    kernel: tuple[int, int], c: int, o: int, kx: int, kw: int, seed: int = 0, **given: Any
) -> ConvLayer:
    """Results of about -4 to 4, so that every activation has something to cut off."""
    rng = np.random.default_rng([*kernel, c, o, kx, kw, seed])
    n = kernel[0] * kernel[1] * c
    scales = rng.uniform(0.2, 1.0, (o, kw)) * rng.choice([-1, 1], (o, kw)) * 3 / np.sqrt(n * kx)
    return ConvLayer(
        (rng.uniform(0.2, 1.0, kx) * rng.choice([-1, 1], kx)).astype(np.float32),
        scales.astype(np.float32),
        rng.integers(0, 2, (o, kw, *kernel, c)).astype(np.bool_),
        **given,
    )


def with_offsets(layer: ConvLayer) -> ConvLayer:
    rng = np.random.default_rng(99)
    o = len(layer.signs)
    return replace(
        layer,
        bias=rng.normal(size=o).astype(np.float32),
        weights_offsets=(rng.normal(size=o) * 0.05).astype(np.float32),
        input_offset=0.75,
    )
