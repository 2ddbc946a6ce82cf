"""Fourier transforms of axes whose extents are known: products with matrices of sines."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.gather import Gather

Floats = NDArray[np.float64]


@rule("DFT")
def dft(k: Building, node: Node) -> Value:
    """Transform an axis of real or complex numbers [..., 1 or 2] to complex ones, or back."""
    x, inverse, half = node[0], node.flag("inverse"), node.flag("onesided")
    rank = len(x.shape)
    axis = node.integer("axis", 1) if node.opset < 20 else _axis(k, node)
    axis = k.axis(axis, x)
    if axis == rank - 1:
        raise RefusedError("it transforms the axis of real and imaginary parts")
    extent = k.dims(x)[axis]
    usual = 2 * (extent - 1) if inverse and half else extent
    length = usual if node.get(1) is None else k.integers(node[1])[0]
    return transformed(k, x, axis, length, inverse=inverse, half=half)


def _axis(k: Building, node: Node) -> int:
    return -2 if node.get(2) is None else k.integers(node[2])[0]


def transformed(
    k: Building, x: Value, axis: int, length: int, *, inverse: bool, half: bool
) -> Value:
    """Multiply an axis and the parts [..., 1 or 2] with a transform's matrix; what is missing of
    its ``length`` is 0.
    """
    rank, dtype = len(x.shape), x.dtype
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    moved = k.transpose(k.cast(x, TensorType.FLOAT32), order)
    *before, extent, parts = k.dims(moved)
    if length < 1 or parts not in (1, 2):
        raise RefusedError(f"a transform of {length} numbers of {parts} parts")
    bins = length // 2 + 1 if half else length
    k.budget.spend(8 * 8 * extent * (length if inverse else bins))
    make = _back_from_half if inverse and half else _whole
    matrix = make(min(extent, bins if inverse else length), length, bins, inverse)
    matrix = matrix[:, :parts].reshape(-1, matrix[0, 0].size)
    rows = np.zeros((extent * parts, matrix.shape[1]))
    rows[: len(matrix)] = matrix
    flat = k.reshape(moved, (1, math.prod(before), extent * parts))
    product = k.add(BatchMatMul(flat, k.constant(rows.astype(np.float32)[None])))
    results = 1 if inverse and half else 2
    shaped = k.reshape(product, (*before, matrix.shape[1] // results, results))
    return k.cast(k.transpose(shaped, [int(i) for i in np.argsort(order)]), dtype)


def _whole(count: int, length: int, bins: int, inverse: bool) -> Floats:
    """Compute the factor of each part of each number in each part of each result [n, 2, bins,
    2].
    """
    angles = 2 * np.pi / length * (np.outer(np.arange(count), np.arange(bins)) % length)
    cosines, sines = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    real, imaginary = np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)
    return np.stack([real, imaginary], 1) / (length if inverse else 1)


def _back_from_half(count: int, length: int, bins: int, inverse: bool) -> Floats:
    """Compute the factor of each part of each bin, and of its mirror image, in each real number
    [bins, 2, length, 1].
    """
    whole = _whole(count, length, length, inverse)[..., :1]
    times = np.full(count, 2.0)
    times[0] = 1
    if length % 2 == 0 and count == bins:
        times[-1] = 1
    matrix: Floats = whole * times.reshape(-1, 1, 1, 1)
    return matrix


@rule("STFT")
def stft(k: Building, node: Node) -> Value:
    """Transform stretches of signals [batch, n, 1 or 2], a step apart: [batch, frames, bins, 2]."""
    signal, step, window = node[0], k.integers(node[1])[0], node.get(2)
    _, extent, parts = k.dims(signal)
    of_window = None if window is None else k.dims(window)[0]
    length = of_window if node.get(3) is None else k.integers(node[3])[0]
    if length is None or length < 1 or step < 1 or length > extent:
        raise RefusedError(f"frames of {length} numbers, {step} apart, of {extent}")
    count = (extent - length) // step + 1
    k.budget.spend(8 * count * length)
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = k.add(Gather(signal, k.int32(places), axis=1))
    if window is not None:
        frames = k.add(Mul(frames, k.reshape(window, (length, 1))))
    half = node.flag("onesided", True) and parts == 1
    return transformed(k, frames, 2, length, inverse=False, half=half)
