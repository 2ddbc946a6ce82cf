"""Quantized tensors. What is dequantized, computed and quantized again becomes one operator on
integers later (``passes/fuse_quantization``), with the file's own scales and zero points.
"""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.element_types import element_type
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.dtypes import PACKED, integer_range
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.elementwise_unary import Round
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quantization import ACTIVATIONS, Affine

_UINT8 = 2
"""ONNX's number of uint8."""
_EXACT = 1 << 24
"""Floats hold all integers of a size below this one."""


def affine_from(
    k: Building, value: Value, dtype: TensorType, scale: Value, point: Value | None, axis: int
) -> Affine | None:
    """Read scales and zero points that a file's tensor can have; None for such that it cannot:
    computed ones, blocks, and types that circle does not quantize. Raises RefusedError for scales
    that are not finite: every code stands for an infinity or for no number.
    """
    points = None if point is None else point.data
    if scale.data is None or (point is not None and points is None):
        return None
    scales = scale.data.reshape(-1)
    for wrong in scales[~np.isfinite(scales)]:
        raise RefusedError(f"a scale is {wrong}: infinities (a mask's?) have no codes")
    if dtype not in (*ACTIVATIONS, *PACKED) or scale.dtype != TensorType.FLOAT32:
        return None
    if len(scale.shape) > 1 or not (np.isfinite(scales) & (scales > 0)).all():
        return None
    zeros = np.zeros(len(scales), np.int64) if points is None else points.reshape(-1)
    if len(zeros) != len(scales) or (dtype == TensorType.INT16 and zeros.any()):
        return None
    axis = k.axis(axis, value) if len(scales) > 1 else 0
    if len(scales) > 1 and value.shape[axis] != len(scales):
        raise RefusedError(f"{len(scales)} scales for an axis of {value.shape[axis]}")
    return Affine.channels(scales, zeros, axis, dtype)


@rule("DequantizeLinear")
def dequantize_linear(k: Building, node: Node) -> Value:
    """Compute (x - zero point) scale."""
    if node.integer("block_size", 0):
        return _blocks(k, node)
    _note_bias(k, node)
    return dequantize(k, node[0], node[1], node.get(2), node.integer("axis", 1))


def _note_bias(k: Building, node: Node) -> None:
    """Keep constant codes of 32 bits that floats do not hold: a layer of integers may read them."""
    codes, scale = node[0].data, node[1].data
    points = np.zeros(1) if node.get(2) is None else node[2].data
    if node[0].dtype != TensorType.INT32 or codes is None or scale is None or points is None:
        return
    if not points.any() and codes.size and abs(codes.astype(np.int64)).max() > _EXACT:
        zeros, axis = np.zeros(scale.size), node.integer("axis", 1) if scale.size > 1 else 0
        affine = Affine.channels(scale.reshape(-1), zeros, axis, TensorType.INT32)
        k.biases[node.outputs[0]] = codes, affine


def dequantize(k: Building, x: Value, scale: Value, point: Value | None, axis: int = 1) -> Value:
    """Compute (x - zero point) scale, by DEQUANTIZE where a tensor can have these."""
    affine = affine_from(k, x, x.dtype, scale, point, axis)
    if affine is not None and x.data is not None:
        return k.dequantized(x.data, affine, x)
    single = affine is not None and affine.scale.size == 1
    if single and affine is not None and _takes(x, affine):
        op = Dequantize(x)
        k.graph.append(op, k.name(f"{k.prefix}/dequantize"))
        return op.output
    dtype = scale.dtype
    real = k.cast(x, dtype)
    if point is not None:
        real = k.add(binary.Sub(real, along(k, k.cast(point, dtype), x, axis)))
    return k.add(binary.Mul(real, along(k, scale, x, axis)))


def _takes(x: Value, affine: Affine) -> bool:
    """Return whether a tensor has this scale and zero point, which it gets unless it has others;
    also the tensor whose codes it moves, which a pass may put in its place.
    """
    before = Affine.given(x)
    if before is not None:
        return before.same_numbers(affine)
    x.quantization = affine.table()
    maker = None if x.producer is None else x.producer.op
    moved = maker.operands[0] if isinstance(maker, Transpose | Reshape) else None
    return moved is None or _takes(moved, affine)


def along(k: Building, vector: Value, x: Value, axis: int) -> Value:
    """Give a number for each index of an axis the axes of a tensor."""
    if len(vector.shape) != 1 or vector.shape == (1,):
        return vector
    axis = k.axis(axis, x)
    return k.reshape(vector, [vector.shape[0] if i == axis else 1 for i in range(len(x.shape))])


def _blocks(k: Building, node: Node) -> Value:
    """Dequantize with a scale for each block of elements along an axis."""
    x, dtype = node[0], node[1].dtype
    scale, point = (None if v is None else _spread(k, node, v) for v in (node[1], node.get(2)))
    assert scale is not None, "there is a scale"
    real = k.cast(x, dtype) if x.dtype not in PACKED else k.constant(k.known(x).astype(np.float32))
    if point is not None:
        real = k.add(binary.Sub(real, k.cast(point, dtype)))
    return k.add(binary.Mul(real, scale))


def _spread(k: Building, node: Node, value: Value) -> Value:
    """Repeat the number of each block for its elements."""
    from luciole.ir.ops.gather import Gather

    axis = k.axis(node.integer("axis", 1), node[0])
    extent = k.dims(node[0])[axis]
    places = np.arange(extent, dtype=np.int32) // node.integer("block_size")
    if value.data is not None:
        return k.constant(np.take(value.data.astype(np.float32), places, axis))
    return k.add(Gather(value, k.constant(places), axis=axis))


@rule("QuantizeLinear")
def quantize_linear(k: Building, node: Node) -> Value:
    """Compute the nearest integers of x / scale + zero point, halves to even, saturated."""
    point = node.get(2)
    if point is not None and point in k.nodes.widened:
        raise RefusedError("it rounds to a type that is not computed")
    said = element_type(node.integer("output_dtype", 0) or _UINT8)
    dtype = point.dtype if point is not None else said
    if node.integer("block_size", 0):
        scale = _spread(k, node, node[1])
        return _rounded(
            k, node[0], scale, None if point is None else _spread(k, node, point), dtype
        )
    return quantize(k, node[0], node[1], point, dtype, node.integer("axis", 1))


def quantize(
    k: Building,
    x: Value,
    scale: Value,
    point: Value | None,
    dtype: TensorType,
    axis: int = 1,
) -> Value:
    """Compute the nearest integers, by QUANTIZE where a tensor can have these numbers."""
    affine = affine_from(k, x, dtype, scale, point, axis)
    usual = affine is not None and affine.scale.size == 1 and dtype in ACTIVATIONS
    if affine is None or not usual or x.dtype != TensorType.FLOAT32 or x.is_constant:
        parts = (None if v is None else along(k, v, x, axis) for v in (scale, point))
        scale_, point_ = parts
        assert scale_ is not None, "there is a scale"
        return _rounded(k, x, scale_, point_, dtype)
    result = k.graph.add_value(Value(k.name(f"{k.prefix}/quantize"), dtype, x.shape))
    result.quantization = affine.table()
    k.graph.append(Quantize(x), results=[result])
    return result


def _rounded(k: Building, x: Value, scale: Value, point: Value | None, dtype: TensorType) -> Value:
    limits = integer_range(dtype)
    if limits is None or dtype in PACKED:
        raise RefusedError(f"{dtype.name} is not quantized to")
    x, scale = k.cast(x, TensorType.FLOAT32), k.cast(scale, TensorType.FLOAT32)
    steps = k.add(Round(k.add(binary.Div(x, scale))))
    if point is not None:
        steps = k.add(binary.Add(steps, k.cast(point, TensorType.FLOAT32)))
    low = k.add(binary.Maximum(steps, k.like(steps, limits[0])))
    return k.cast(k.add(binary.Minimum(low, k.like(steps, limits[1]))), dtype)
