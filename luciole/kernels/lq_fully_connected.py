"""LQ_FULLY_CONNECTED kernels: a reference on dequantized values, xnor/popcount on packed bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, codes
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.kernels import jit
from luciole.kernels.activation import activate
from luciole.kernels.jit import Pointer, Record, floats, popcount, words
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.schema.enums import ActivationFunctionType

ACTIVATIONS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.TANH,
)


@reference(LQFullyConnected, TensorType.FLOAT32)
def lq_fully_connected(
    op: LQFullyConnected,
    x: Array,
    input_scales: Array,
    weights_scales: Array,
    weights_binary: Array,
    bias: Array | None,
    weights_offsets: Array | None,
) -> Array:
    """Quantize the input, dequantize the weights, multiply: in float64, so that it can judge the
    other.
    """
    levels, _ = codes.levels(input_scales, op.input_offset)
    quantized = levels[codes.encode(x, codes.thresholds(levels))]
    weights = codes.decode(weights_binary, weights_scales, op.hidden_size, or_zero(weights_offsets))
    y = quantized.reshape(-1, op.hidden_size) @ weights.T + or_zero(bias)
    y = y.reshape(*x.shape[:-1], weights.shape[0]).astype(np.float32)
    return activate(y, op.activation)


def or_zero(array: Array | None) -> Array:
    """An optional operand, absent meaning 0 for every output."""
    return np.zeros(1, np.float32) if array is None else array


@native(LQFullyConnected, TensorType.FLOAT32)
def build(op: LQFullyConnected, context: Context) -> NativeStep | None:
    """Lay weights out with one output per lane: [word, plane, output], so that counting needs no
    horizontal sum.

    The input's offset meets every weight of a row once, so its share goes into the bias here.
    """
    x, input_scales, scales, binary, bias, offsets = [*context.operands, None, None][:6]
    if x is None or input_scales is None or scales is None or binary is None:
        return None
    constant = all(value is None or value.is_constant for value in op.operands[1:])
    if not constant or op.activation not in ACTIVATIONS:
        return None
    levels, order = codes.levels(input_scales, op.input_offset)
    outputs, planes, count = binary.shape
    folded = _folded_bias(op, scales, binary, bias, offsets)
    owned: tuple[Array, ...] = (
        codes.thresholds(levels),
        order.astype(np.uint32),
        np.ascontiguousarray(input_scales, np.float32),
        _by_word(binary, op.hidden_size),
        np.ascontiguousarray(scales.T, np.float32),
        folded,
        np.zeros(outputs, np.float32) if offsets is None else np.ascontiguousarray(offsets),
        np.zeros(len(input_scales) * count, np.uint32),
        np.zeros(outputs, np.uint32),
    )
    sizes = (
        x.size // op.hidden_size,
        op.hidden_size,
        outputs,
        len(input_scales),
        planes,
        offsets is not None,
    )
    addresses = [a.ctypes.data for a in (x, context.results[0], *owned)]
    record = np.array([*addresses, *sizes, int(op.activation)], np.int64)
    return NativeStep(_xnor.address, record, owned)


def _by_word(binary: Array, n: int) -> NDArray[np.uint32]:
    """[o, kw, words] as [words, kw, o]."""
    return np.ascontiguousarray(without_padding(binary, n).transpose(2, 1, 0))


def without_padding(binary: Array, n: int) -> NDArray[np.uint32]:
    """A copy of words [..., ceil(n / 32)], padding bits cleared, whatever a file holds there."""
    words = np.array(binary, np.int32, order="C").view(np.uint32)
    if n % codes.WORD:
        words[..., -1] &= np.uint32((1 << n % codes.WORD) - 1)
    return words


def _folded_bias(
    op: LQFullyConnected, scales: Array, binary: Array, bias: Array | None, offsets: Array | None
) -> NDArray[np.float32]:
    weights = codes.decode(binary, scales, op.hidden_size, or_zero(offsets))
    return np.asarray(or_zero(bias) + op.input_offset * weights.sum(1), np.float32)


@jit.inline
def _quantize(
    x: Pointer, between: Pointer, order: Pointer, bits: int, n: int, planes: Pointer
) -> None:
    """Encode a row by binary search and set its bits in ``planes`` [bits, ceil(n / 32)]."""
    count = (n + 31) // 32
    for k in range(bits * count):
        planes[k] = np.uint32(0)
    for k in range(n):
        level = 0
        step = 1 << (bits - 1)
        while step > 0:
            if x[k] > between[level + step - 1]:
                level += step
            step >>= 1
        code = order[level]
        for i in range(bits):
            bit = (code >> np.uint32(i)) & np.uint32(1)
            planes[i * count + (k >> 5)] |= bit << np.uint32(k & 31)


@jit.inline
def _differing(
    plane: Pointer, weights: Pointer, stride: int, count: int, outputs: int, bits: Pointer
) -> None:
    """For each output, the number of bits in which an input plane differs from a weight plane."""
    for o in range(outputs):
        bits[o] = np.uint32(0)
    for w in range(count):
        word = plane[w]
        for o in range(outputs):
            bits[o] += popcount(word ^ weights[w * stride + o])


@jit.inline
def _ones(plane: Pointer, count: int) -> int:
    """Number of set bits of a plane."""
    total = 0
    for w in range(count):
        total += popcount(plane[w])
    return total


@jit.inline
def _activate(y: Pointer, outputs: int, activation: int) -> None:
    """Apply a fused activation, numbered as in the file."""
    for o in range(outputs):
        v = y[o]
        if activation == 1:
            y[o] = max(v, np.float32(0))
        elif activation == 2:
            y[o] = min(max(v, np.float32(-1)), np.float32(1))
        elif activation == 3:
            y[o] = min(max(v, np.float32(0)), np.float32(6))
        elif activation == 4:
            y[o] = np.float32(math.tanh(v))


@jit.kernel
def _xnor(r: Record) -> None:
    """y_o = sum_ij ax_i aw_oj (n - 2 popcount(x_i xor w_oj)) + offset_o sum_i ax_i (2 popcount(x_i)
    - n) + b_o.
    """
    between, order, input_scales = floats(r[2]), words(r[3]), floats(r[4])
    scales, bias, offsets = floats(r[6]), floats(r[7]), floats(r[8])
    rows, n, outputs, kx, kw = r[11], r[12], r[13], r[14], r[15]
    count = (n + 31) // 32
    bits = words(r[10])
    for row in range(rows):
        x, y = floats(r[0] + 4 * row * n), floats(r[1] + 4 * row * outputs)
        _quantize(x, between, order, kx, n, words(r[9]))
        for o in range(outputs):
            y[o] = bias[o]
        for i in range(kx):
            plane = words(r[9] + 4 * i * count)
            for j in range(kw):
                _differing(plane, words(r[5] + 4 * j * outputs), kw * outputs, count, outputs, bits)
                for o in range(outputs):
                    equal_less_differing = np.float32(n - 2 * np.int64(bits[o]))
                    y[o] += input_scales[i] * scales[j * outputs + o] * equal_less_differing
            if r[16]:
                total = input_scales[i] * np.float32(2 * _ones(plane, count) - n)
                for o in range(outputs):
                    y[o] += offsets[o] * total
        _activate(y, outputs, r[17])
