"""Dense layers, means and other scales of int8 in the arithmetic of TFLite's kernels, as
``operators.exact`` writes convolutions.
"""

from __future__ import annotations

import math

import numpy as np

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.exact import INT8, INT32, code, is_single, rescaled, scale_of
from luciole.exporters.onnx.operators.reductions import along_axes, axes_of
from luciole.exporters.onnx.rules import exact_rule
from luciole.ir.analysis.fixed_point import (
    activation_range,
    mean_multiplier,
    quantize_multiplier,
)
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.reduce import Mean
from luciole.ir.quantization import Affine, affine_of
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat

_MOST = (1 << 31) // 255
"""Codes whose sum an int32 holds whatever they are."""


def _fits_rows(op: FullyConnected) -> bool:
    weights, bias, affine = op.weights, op.bias, affine_of(op.weights)
    plain = op.weights_format == FullyConnectedOptionsWeightsFormat.DEFAULT
    stored = weights.dtype == INT8 and weights.is_constant and weights.sparsity is None
    symmetric = affine is not None and affine.is_symmetric and affine.axis == 0
    known = bias is None or (bias.dtype == INT32 and bias.is_constant)
    both = is_single(op.input) and is_single(op.output)
    return both and plain and stored and symmetric and known


@exact_rule(FullyConnected, fits=_fits_rows)
def fully_connected(k: Building, op: FullyConnected) -> None:
    """Sum products of codes, add the bias, and bring the sums to the result's steps in double
    precision, as kernels of dense layers do.
    """
    n, rank = op.weights.dims[1], len(op.input.shape)
    rows = op.input.shape[-1:] == (n,) and (op.keep_num_dims or rank == 2)
    x = k.of(op.input) if rows else k.reshape(k.of(op.input), -1, n)
    center = code(k, scale_of(op.input).zero)
    sums = k.add("MatMulInteger", x, k.weights(op.weights, (1, 0)), center)
    if op.bias is not None and op.bias.data is not None:
        sums = k.add("Add", sums, k.constant(op.bias.data.reshape(-1)))
    scales = Affine.of_weights(op.weights, 0).parameters[0].astype(np.float64)
    scale, zero = scale_of(op.output)
    factors = np.float64(scale_of(op.input).scale) * scales / np.float64(scale)
    numbers = (factors, zero, *activation_range(op.activation, INT8, scale, zero))
    terms = [k.constant(np.asarray(n, np.float64)) for n in numbers]
    k.put(op.output, k.own("Scale", sums, *terms))


def _count(op: Mean) -> int | None:
    """Count the codes of a mean, None where that is not known."""
    if not op.reduction_indices.is_constant:
        return None
    extents = [op.input.shape[axis] for axis in {*axes_of(op)}]
    return math.prod(n for n in extents if n is not None) if None not in extents else None


def _fits_mean(op: Mean) -> bool:
    return is_single(op.input) and is_single(op.output) and 0 < (_count(op) or 0) <= _MOST


@exact_rule(Mean, fits=_fits_mean)
def mean(k: Building, op: Mean) -> None:
    """Sum codes, and bring the sum to the result's steps in one factor that divides as well."""
    count, (scale, zero) = _count(op) or 0, scale_of(op.input)
    factor = mean_multiplier(scale, scale_of(op.output).scale, count)

    def made(x: Term, axes: Term) -> Term:
        options = {"keepdims": int(op.keep_dims), "noop_with_empty_axes": 1}
        total = k.add("ReduceSum", k.cast(x, INT32), axes, **options)
        return rescaled(k, k.add("Sub", total, k.number(zero * count, INT32)), factor, op.output)

    along_axes(k, op, made)


def _fits_codes(op: Quantize) -> bool:
    return is_single(op.input) and is_single(op.output)


@exact_rule(Quantize, fits=_fits_codes)
def requantize(k: Building, op: Quantize) -> None:
    """Bring codes to other steps."""
    scale, zero = scale_of(op.input)
    first = k.is_first(op.input)
    x = k.cast(k.channels_first(op.input) if first else k.of(op.input), INT32)
    factor = quantize_multiplier(float(scale) / float(scale_of(op.output).scale))
    y = rescaled(k, k.add("Sub", x, k.number(zero, INT32)), factor, op.output)
    (k.put_first if first else k.put)(op.output, y)
