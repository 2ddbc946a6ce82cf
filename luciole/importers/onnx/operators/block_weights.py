"""Weights of few bits with a scale for each block, as onnxruntime packs them: blockwise INT4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.hybrid_nodes import MICROSOFT
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.shape import padded
from luciole.importers.onnx.rules import rule, standard
from luciole.ir import Array, TensorType, Value
from luciole.ir.blockwise import set_blocks
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.passes.fuse_quantization import raise_version

_SHORT = (2, 4)
"""Bits of codes that INT4 holds."""
_HALF = 2.0**-11
"""How far float16 is from a number, as a share of it, unless it is too large or small for it."""


@rule("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(k: Building, node: Node) -> Value:
    """Multiply by weights of few bits: [outputs, blocks, bytes], with a scale for each block and a
    zero point, half of all codes unless the file says others.
    """
    bits, inputs = node.integer("bits", 4), node.integer("K")
    outputs, size = node.integer("N"), node.integer("block_size")
    if node.get(4) is not None or bits not in (*_SHORT, 8) or size < 1 or min(inputs, outputs) < 1:
        raise RefusedError(f"{bits} bits in blocks of {size}, or in another order")
    count = -(-inputs // size)
    codes = _unpacked(k.known(node[1]).reshape(outputs, -1), bits)
    if codes.shape[1] != count * size:
        raise RefusedError(f"{codes.shape[1]} codes of an output are no {count} blocks of {size}")
    scales = k.known(node[2]).astype(np.float32).reshape(outputs, count)
    x, half = _filled(k, k.cast(node[0], TensorType.FLOAT32), count * size), 1 << (bits - 1)
    points = _points(k, node.get(3), bits, (outputs, count), half)
    if bits in _SHORT:
        product = _layer(k, x, _blocks(k, codes - half, scales, node[1]))
        product = _with_points(k, x, product, (half - points) * scales)
    else:
        real = (codes.reshape(outputs, count, size) - points[..., None]) * scales[..., None]
        product = _layer(k, x, k.constant(real.reshape(outputs, -1).astype(np.float32)))
    bias = node.get(5)
    return product if bias is None else k.add(binary.Add(product, bias))


def _unpacked(raw: Array, bits: int) -> NDArray[np.int32]:
    """Take the codes out of the bytes of rows, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (raw[..., None] >> shifts) & ((1 << bits) - 1)
    return np.asarray(codes.reshape(len(raw), -1), np.int32)


def _points(
    k: Building, value: Value | None, bits: int, shape: tuple[int, int], half: int
) -> NDArray[np.float32]:
    """Read the zero points of blocks, which are packed by rows, or are floats."""
    if value is None:
        return np.full(shape, half, np.float32)
    data = k.known(value)
    if data.dtype == np.uint8:
        return _unpacked(data.reshape(shape[0], -1), bits)[:, : shape[1]].astype(np.float32)
    return np.asarray(data.reshape(shape), np.float32)


def _filled(k: Building, x: Value, inputs: int) -> Value:
    """Put zeros behind rows up to whole blocks."""
    missing = inputs - (x.shape[-1] or 0)
    if not missing:
        return x
    table = np.array([*[(0, 0)] * (len(x.shape) - 1), (0, missing)], np.int64)
    return padded(k, x, table, k.like(x, 0))


def _blocks(k: Building, codes: Array, scales: NDArray[np.float32], source: Value) -> Value:
    """Add INT4 weights, with scales of 16 bits as TFLite has them, unless these lose one."""
    weights = k.constant(codes.astype(np.int8), k.name(source.name), TensorType.INT4)
    with np.errstate(over="ignore"):
        short = scales.astype(np.float16)
    fits = (np.abs(short.astype(np.float32) - scales) <= _HALF * np.abs(scales)).all()
    set_blocks(weights, k.constant(short if fits else scales))
    return weights


def _layer(k: Building, x: Value, weights: Value) -> Value:
    layer = FullyConnected(x, weights, None, keep_num_dims=len(x.shape) != 2)
    raise_version(layer)
    return k.add(layer)


def _with_points(k: Building, x: Value, product: Value, points: NDArray[np.float32]) -> Value:
    """Add the share of zero points: the sum of each block of a row times a number."""
    if not points.any():
        return product
    count, rank = points.shape[1], len(x.shape)
    shape = k.constant(np.array([*[0] * (rank - 1), count, (x.shape[-1] or 0) // count], np.int64))
    parts = standard(k, "Reshape", [x, shape])
    sums = standard(
        k, "ReduceSum", [parts, k.constant(np.array([rank], np.int64))], {"keepdims": 0}
    )
    return k.add(binary.Add(product, _layer(k, sums, k.constant(points.astype(np.float32)))))
