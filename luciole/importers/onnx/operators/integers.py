"""Products of 8-bit integers to INT32, exact: floats hold the sums of some products, and integers
those of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.hybrid_nodes import MICROSOFT
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import convolved
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.quantization import along
from luciole.importers.onnx.rules import rule
from luciole.importers.onnx.windows import windows_of
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.split_v import SplitV

_MOST = 258
"""Products of integers between -255 and 255 whose sum float32 holds: 258 * 255^2 < 2^24."""


@rule("MatMulInteger")
def matmul_integer(k: Building, node: Node) -> Value:
    """Multiply matrices of integers to INT32."""
    return _product(k, node[0], node[1], node.get(2), node.get(3))


@rule("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(k: Building, node: Node) -> Value:
    """Multiply matrices of integers, scale the sums and add a bias."""
    sums = _product(k, node[0], node[1], node.get(4), node.get(5))
    scale = k.add(binary.Mul(node[2], node[3]))
    product = k.add(binary.Mul(k.cast(sums, TensorType.FLOAT32), scale))
    bias = node.get(6)
    return product if bias is None else k.add(binary.Add(product, bias))


def _product(
    k: Building, x: Value, y: Value, x_point: Value | None, y_point: Value | None
) -> Value:
    x, y = _centred(k, x, x_point, -2), _centred(k, y, y_point, -1)
    inner = x.shape[-1] if x.shape else None
    if inner is None:
        raise RefusedError("it sums over an open extent")
    rows = max(0, len(y.shape) - 2)
    parts = zip(_cut(k, x, len(x.shape) - 1, _MOST), _cut(k, y, rows, _MOST), strict=True)
    return _sum(k, [matmul(k, *pair) for pair in parts])


@rule("ConvInteger")
def conv_integer(k: Building, node: Node) -> Value:
    """Convolve integers to INT32."""
    x, w = _centred(k, node[0], node.get(2), 1), _centred(k, node[1], node.get(3), 0)
    windows, groups = windows_of(node, x.shape, k.dims(w)[2:]), node.integer("group", 1)
    channels, taps = k.dims(w)[1], int(np.prod(k.dims(w)[2:]))
    if taps > _MOST or (groups > 1 and channels * taps > _MOST):
        raise RefusedError(f"floats do not hold sums of {channels * taps} products")
    if x.shape[1] != channels * groups:
        raise RefusedError(f"filters of {channels} channels in {groups} groups for {x.shape[1]}")
    if groups > 1:
        return _sum(k, [convolved(k, x, w, None, windows, groups)])
    count = _MOST // taps
    parts = zip(_cut(k, x, 1, count), _cut(k, w, 1, count), strict=True)
    return _sum(k, [convolved(k, part, filters, None, windows, 1) for part, filters in parts])


def _centred(k: Building, x: Value, point: Value | None, axis: int) -> Value:
    """Take the zero point off, as floats."""
    wide = k.cast(x, TensorType.FLOAT32)
    if point is None:
        return wide
    zero = k.cast(point, TensorType.FLOAT32)
    return k.add(binary.Sub(wide, zero if axis == -1 else along(k, zero, x, axis)))


def _cut(k: Building, value: Value, axis: int, most: int) -> Sequence[Value]:
    """Cut a value into parts of at most so many indices of an axis."""
    extent = value.shape[axis] or 0
    sizes = [min(most, extent - begin) for begin in range(0, extent, most)]
    if len(sizes) == 1:
        return [value]
    numbers, place = k.int32(sizes), k.constant(np.int32(axis))
    return k.several(SplitV(value, numbers, place, num_splits=len(sizes)))


def _sum(k: Building, parts: Sequence[Value]) -> Value:
    """Add floats that are integers up as INT32."""
    if not parts:
        raise RefusedError("it sums no products")
    return k.joined(binary.Add, [k.cast(part, TensorType.INT32) for part in parts])
