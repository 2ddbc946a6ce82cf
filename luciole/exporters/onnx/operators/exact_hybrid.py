"""Convolutions of int8 filters under a float image as TFLite's kernels compute them: the image is
brought to integers while the model runs, on a grid of its own.

The kernels' arithmetic is in ``kernels/layers/int8/hybrid.py``. Integers are floats here, which
hold sums of them exactly below 2^24.
"""

from __future__ import annotations

import math

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.operators.convolutions import padded
from luciole.exporters.onnx.rules import exact_rule
from luciole.ir import Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.quantization import affine_of

FLOAT32, FLOAT64 = TensorType.FLOAT32, TensorType.FLOAT64

_LARGEST, _STEPS = 127, 255
_EXACT = 1 << 24


def fits(op: Op) -> bool:
    """Return whether a convolution has known filters of int8 without zero points, and sums that
    floats hold.
    """
    x, filter, *rest = op.operands
    if x is None or filter is None or filter.dtype != TensorType.INT8 or not filter.is_constant:
        return False
    affine, known = affine_of(filter), all(v is None or v.is_constant for v in rest)
    single = affine is not None and affine.is_symmetric
    alike = x.shape[3] == filter.dims[3] and None not in x.shape[1:]
    small = math.prod(filter.dims[1:]) * _LARGEST * _STEPS < _EXACT
    return x.dtype == FLOAT32 and single and known and alike and small


@exact_rule(Conv2D, fits=fits)
def hybrid(k: Building, op: Conv2D) -> None:
    """Sum products of the image's steps and the filter's, and bring them back by both scales."""
    affine = affine_of(op.filter)
    assert affine is not None, "filters have scales"
    scales = affine.scale
    alone = bool((scales == scales[0]).all())
    steps, images = (_grid if alone else _grid_with_zero)(k, k.channels_first(op.input))
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    options = padded(op.input.shape, op.filter.dims[1:3], strides, dilations, op.padding)
    filters = k.cast(k.weights(op.filter, (0, 3, 1, 2)), FLOAT32)
    sums = k.add("Conv", steps, filters, **options)
    if alone:
        y = k.add("Mul", sums, k.add("Mul", images, k.number(float(scales[0]))))
    else:
        scaled = k.add("Mul", sums, k.constant(scales.reshape(1, -1, 1, 1)))
        y = k.add("Mul", scaled, images)
    if op.bias is not None and op.bias.data is not None:
        y = k.add("Add", y, k.constant(op.bias.data.reshape(1, -1, 1, 1)))
    k.put_first(op.output, activated(k, y, op.activation))


def _grid(k: Building, x: Term) -> tuple[Term, Term]:
    """Steps of each image on a grid around 0, and their scale: ``hybrid.quantize_rows``."""
    span, largest = k.add("ReduceMax", k.add("Abs", x), k.ints(1, 2, 3)), k.number(_LARGEST)
    inverse = k.add("Div", largest, span)
    small = k.add("IsInf", inverse)
    scale = k.add("Where", small, k.number(1), k.add("Div", span, largest))
    steps = _nearest(k, k.add("Mul", x, k.add("Where", small, k.number(0), inverse)))
    return k.add("Clip", steps, k.number(-_LARGEST), largest), scale


def _grid_with_zero(k: Building, x: Term) -> tuple[Term, Term]:
    """Steps of each image from 0 on a grid between its least and its largest number, and their
    scale: ``hybrid.quantize_rows_with_zero``.
    """
    zero, axes = k.number(0), k.ints(1, 2, 3)
    least = k.cast(k.add("Min", k.add("ReduceMin", x, axes), zero), FLOAT64)
    most = k.cast(k.add("Max", k.add("ReduceMax", x, axes), zero), FLOAT64)
    flat, one = k.add("Equal", least, most), k.number(1, FLOAT64)
    whole = k.add("Div", k.add("Sub", most, least), k.number(_STEPS, FLOAT64))
    scale = k.add("Where", flat, one, whole)
    ends = [k.add("Div", end, scale) for end in (least, most)]
    point = k.cast(_zero_point(k, *ends), FLOAT32)
    scales = k.cast(scale, FLOAT32)
    inverse = k.cast(k.add("Div", one, k.cast(scales, FLOAT64)), FLOAT32)
    steps = _nearest(k, k.add("Mul", x, k.add("Where", flat, zero, inverse)))
    low, high = (k.add("Sub", k.number(n), point) for n in (-_LARGEST - 1, _LARGEST))
    return k.add("Max", k.add("Min", steps, high), low), scales


def _zero_point(k: Building, least: Term, most: Term) -> Term:
    """Choose the integer of 0 that is computed with less error: ``hybrid._zero_points``."""
    low, high = (k.number(n, FLOAT64) for n in (-_LARGEST - 1, _LARGEST))
    far = (k.add("Add", k.add("Abs", n), k.add("Abs", e)) for n, e in ((low, least), (high, most)))
    nearer = k.add("Less", *far)
    both = [k.add("Sub", n, end) for n, end in ((low, least), (high, most))]
    chosen = _nearest(k, k.add("Where", nearer, *both), FLOAT64)
    return k.add("Max", k.add("Min", chosen, high), low)


def _nearest(k: Building, x: Term, dtype: TensorType = FLOAT32) -> Term:
    """Round halves away from 0."""
    up = k.add("Floor", k.add("Add", k.add("Abs", x), k.number(0.5, dtype)))
    return k.add("Mul", k.add("Sign", x), up)
