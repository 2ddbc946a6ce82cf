"""Quantized tensors. What is dequantized, computed and quantized again becomes one operator on
integers later (``passes/fuse_quantization``), with the file's own scales and zero points.
"""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.convolution import convolved
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.matrix import gemm, matmul
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.importers.onnx.windows import windows_of
from luciole.ir import TensorType, Value
from luciole.ir.dtypes import PACKED, integer_range
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_unary import Round
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quantization import ACTIVATIONS, Affine
from luciole.schema.onnx_dialect import ELEMENT_TYPES

MICROSOFT = "com.microsoft"
_EXACT = 1 << 24
"""Floats hold all integers of a size below this one."""


def affine_from(
    k: Building, value: Value, dtype: TensorType, scale: Value, point: Value | None, axis: int
) -> Affine | None:
    """Read scales and zero points that a file's tensor can have; None for such that it cannot:
    computed ones, blocks, and types that circle does not quantize.
    """
    points = None if point is None else point.data
    if scale.data is None or (point is not None and points is None):
        return None
    scales = scale.data.reshape(-1)
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
        real = k.add(binary.Sub(real, _along(k, k.cast(point, dtype), x, axis)))
    return k.add(binary.Mul(real, _along(k, scale, x, axis)))


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


def _along(k: Building, vector: Value, x: Value, axis: int) -> Value:
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
    said = ELEMENT_TYPES.get(node.integer("output_dtype", 0) or 2, TensorType.UINT8)
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
        parts = (None if v is None else _along(k, v, x, axis) for v in (scale, point))
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


@rule("QLinearConv")
def q_linear_conv(k: Building, node: Node) -> Value:
    """Convolve integers: dequantized, convolved and quantized, which becomes one operator."""
    x = dequantize(k, node[0], node[1], node[2])
    w = dequantize(k, node[3], node[4], node[5], 0)
    bias = node.get(8)
    if bias is not None:
        steps = k.add(binary.Mul(node[1], node[4]))
        bias = k.add(binary.Mul(k.cast(bias, TensorType.FLOAT32), steps))
    windows = windows_of(node, node[0].shape, k.dims(node[3])[2:])
    convolution = convolved(k, x, w, bias, windows, node.integer("group", 1))
    return quantize(k, convolution, node[6], node[7], node[7].dtype)


@rule("QLinearMatMul")
def q_linear_matmul(k: Building, node: Node) -> Value:
    """Multiply matrices of integers."""
    x = dequantize(k, node[0], node[1], node[2], -2)
    y = dequantize(k, node[3], node[4], node[5], -1)
    return quantize(k, matmul(k, x, y), node[6], node[7], node[7].dtype)


@rule("QGemm", domain=MICROSOFT)
def q_gemm(k: Building, node: Node) -> Value:
    """Multiply by a matrix and add: its result may be floats."""
    x = dequantize(k, node[0], node[1], node[2])
    w = dequantize(k, node[3], node[4], node[5], 0 if node.flag("transB") else 1)
    bias = node.get(6)
    if bias is not None:
        steps = k.add(binary.Mul(node[1], node[4]))
        bias = k.add(binary.Mul(k.cast(bias, TensorType.FLOAT32), steps))
    inner = Node("Gemm", 13, [x, w, bias], node.outputs, node.attributes)
    product = gemm(k, inner)
    assert isinstance(product, Value), "it has one result"
    scale, point = node.get(7), node.get(8)
    if scale is None or point is None:
        return product
    return quantize(k, product, scale, point, point.dtype)


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def q_linear_binary(k: Building, node: Node) -> Value:
    """Add or multiply integers."""
    x = dequantize(k, node[0], node[1], node[2])
    y = dequantize(k, node[3], node[4], node[5])
    cls = binary.Add if node.kind == "QLinearAdd" else binary.Mul
    return quantize(k, k.add(cls(x, y)), node[6], node[7], node[7].dtype)


@rule("QLinearConcat", domain=MICROSOFT)
def q_linear_concat(k: Building, node: Node) -> Value:
    """Put integers behind each other along an axis."""
    operands = [node[slot] for slot in range(2, len(node.operands))]
    rows = zip(operands[::3], operands[1::3], operands[2::3], strict=True)
    parts = tuple(dequantize(k, x, scale, point) for x, scale, point in rows)
    whole = k.add(Concatenation(parts, axis=k.axis(node.integer("axis"), parts[0])))
    return quantize(k, whole, node[0], node[1], node[1].dtype)


@rule("QLinearGlobalAveragePool", domain=MICROSOFT)
def q_linear_mean(k: Building, node: Node) -> Value:
    """Compute the means of images of integers."""
    from luciole.ir.ops.reduce import Mean

    if node.flag("channels_last"):
        raise RefusedError("its channels come last")
    x = dequantize(k, node[0], node[1], node[2])
    axes = k.constant(np.arange(2, len(x.shape), dtype=np.int32))
    return quantize(k, k.add(Mean(x, axes, keep_dims=True)), node[3], node[4], node[4].dtype)


@rule("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def q_linear_unary(k: Building, node: Node) -> Value:
    """Apply a function to integers."""
    from luciole.ir.ops.activations import Logistic
    from luciole.ir.ops.leaky_relu import LeakyRelu

    x = dequantize(k, node[0], node[1], node[2])
    if node.kind == "QLinearSigmoid":
        applied = k.add(Logistic(x))
    else:
        applied = k.add(LeakyRelu(x, alpha=node.number("alpha", 0.01)))
    return quantize(k, applied, node[3], node[4], node[4].dtype)


@rule("MatMulInteger")
def matmul_integer(k: Building, node: Node) -> Value:
    """Multiply matrices of integers to INT32."""
    x = _centred(k, node[0], node.get(2), -2)
    y = _centred(k, node[1], node.get(3), -1)
    return matmul(k, x, y)


@rule("ConvInteger")
def conv_integer(k: Building, node: Node) -> Value:
    """Convolve integers to INT32, with floats that hold all sums."""
    terms = int(np.prod(k.dims(node[1])[1:]))
    if terms * 255 * 255 >= _EXACT:
        raise RefusedError(f"floats do not hold sums of {terms} products")
    x, w = _centred(k, node[0], node.get(2), 1), _centred(k, node[1], node.get(3), 0)
    x, w = (k.cast(v, TensorType.FLOAT32) for v in (x, w))
    windows = windows_of(node, node[0].shape, k.dims(node[1])[2:])
    sums = convolved(k, x, w, None, windows, node.integer("group", 1))
    return k.cast(sums, TensorType.INT32)


def _centred(k: Building, x: Value, point: Value | None, axis: int) -> Value:
    """Take the zero point off."""
    wide = k.cast(x, TensorType.INT32)
    if point is None:
        return wide
    zero = k.cast(point, TensorType.INT32)
    if axis == -1:
        return k.add(binary.Sub(wide, zero))
    return k.add(binary.Sub(wide, _along(k, zero, x, axis)))
