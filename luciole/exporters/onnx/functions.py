"""Bodies of standard operators for our own ones, so that every runtime computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.schema.onnx_dialect import DOMAIN

if TYPE_CHECKING:
    from onnx import FunctionProto

_PLACES = ",".join(map(str, range(32)))

_LEVELS = """
    last = Constant <value_ints: ints = [-1]> ()
    front = Constant <value_ints: ints = [0]> ()
    extents = Shape (x)
    rank = Shape (extents)
    ones = ConstantOfShape <value: tensor = int64[1] {1}> (rank)
    column = Concat <axis: int = 0> (last, ones)
    lines = Reshape (thresholds, column)
    x_front = Unsqueeze (x, front)
    above = Greater (x_front, lines)
    one_each = Cast <to: int = 6> (above)
    level = ReduceSum <keepdims: int = 0> (one_each, front)
    quantized = Gather (levels, level)
"""
"""Inputs as levels: as many thresholds as lie below tell which. They are counted along the first
axis: along the last one runtimes compare a few numbers at a time, which takes twice as long.
"""

_SIGNS = f"""
    places = Constant <value: tensor = uint32[32] {{{_PLACES}}}> ()
    one = Constant <value: tensor = uint32[1] {{1}}> ()
    after = Constant <value_ints: ints = [-1]> ()
    words = Unsqueeze (weights_binary, after)
    shifted = BitShift <direction: string = "RIGHT"> (words, places)
    bits = BitwiseAnd (shifted, one)
    flat = Reshape (bits, flat_shape)
    zeros_ones = Cast <to: int = 1> (kept)
    two = Constant <value_float: float = 2.0> ()
    minus = Constant <value_float: float = 1.0> ()
    doubled = Mul (zeros_ones, two)
    signs = Sub (doubled, minus)
"""
"""Bits of 32-bit words, the lowest first, as -1 and 1."""


def _signs(flat_shape: str, kept: str) -> str:
    """Write the nodes of ``_SIGNS`` with the shape of rows of signs, and which of them count."""
    shape = f"    flat_shape = Constant <value_ints: ints = {flat_shape}> ()\n"
    return shape + _SIGNS.replace("    zeros_ones", f"{kept}    zeros_ones")


_KEPT = """    first = Constant <value_ints: ints = [0]> ()
    n = Constant <value_ints: ints = @{count}> ()
    axis = Constant <value_ints: ints = [{axis}]> ()
    kept = Slice (flat, first, n, axis)
"""

_SUMMED = """
    scales = {scales}
    parts = Mul (signs, scales)
    planes = Constant <value_ints: ints = [1]> ()
    summed = ReduceSum <keepdims: int = 0> (parts, planes)
    offset_axes = Constant <value_ints: ints = {axes}> ()
    offsets = Unsqueeze (weights_offsets, offset_axes)
    weights = Add (summed, offsets)
"""

_OPERANDS = "x, thresholds, levels, weights_binary, weights_scales, weights_offsets, bias"

_ALSO = "input_scales, input_offset, has_bias, has_offsets"
"""Attributes that no body reads: properties of the model, by which a reader finds it again."""

BODIES = {
    "Rescale": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "sums times fixed-point numbers to codes">
Rescale (sums, multiplier, unit, start, divisor, point, least, most) => (y)
{{
    half = Constant <value: tensor = int64 {{1073741824}}> ()
    below = Constant <value: tensor = int64 {{-1}}> ()
    zero = Constant <value: tensor = int64 {{0}}> ()
    wide = Cast <to: int = 7> (sums)
    product = Mul (wide, multiplier)
    nudged = Add (product, half)
    sign = Clip (nudged, below, zero)
    down = Mul (sign, unit)
    moved = Add (nudged, down)
    total = Add (moved, start)
    whole = Div (total, divisor)
    code = Sub (whole, point)
    cut = Clip (code, least, most)
    y = Cast <to: int = 3> (cut)
}}""",
    "Scale": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "sums times numbers to codes">
Scale (sums, factors, zero, least, most) => (y)
{{
    half = Constant <value: tensor = double {{0.5}}> ()
    wide = Cast <to: int = 11> (sums)
    steps = Mul (wide, factors)
    size = Abs (steps)
    whole = Floor (size)
    left = Sub (size, whole)
    above = GreaterOrEqual (left, half)
    one = Cast <to: int = 11> (above)
    nearest = Add (whole, one)
    sign = Sign (steps)
    rounded = Mul (sign, nearest)
    code = Add (rounded, zero)
    cut = Clip (code, least, most)
    y = Cast <to: int = 3> (cut)
}}""",
    "LQFullyConnected": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "y = q(x) W^T + b with learned levels">
LQFullyConnected <hidden_size, {_ALSO}> ({_OPERANDS}) => (y)
{{{_LEVELS}{_signs("[0, 0, -1]", _KEPT.format(count="hidden_size", axis=2))}
{_SUMMED.format(scales="Unsqueeze (weights_scales, last)", axes="[1]")}
    turned = Transpose <perm: ints = [1, 0]> (weights)
    product = MatMul (quantized, turned)
    y = Add (product, bias)
}}""",
    "LQConv2D": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "y = q(x) * W + b with learned levels">
LQConv2D <input_channels, {_ALSO}, padding, pads, strides, dilations>
    ({_OPERANDS}) => (y)
{{{_LEVELS}{_signs("[0, 0, 0, 0, -1]", _KEPT.format(count="input_channels", axis=4))}
    scale_axes = Constant <value_ints: ints = [2, 3, 4]> ()
{_SUMMED.format(scales="Unsqueeze (weights_scales, scale_axes)", axes="[1, 2, 3]")}
    turned = Transpose <perm: ints = [0, 3, 1, 2]> (weights)
    y = Conv <pads: ints = @pads, strides: ints = @strides, dilations: ints = @dilations>
        (quantized, turned, bias)
}}""",
    "BCQFullyConnected": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "y = W x + b, weights sums of signs">
BCQFullyConnected <hidden_size, clusters, has_bias>
    (x, weights_scales, weights_binary, rows, zeros, bias) => (y)
{{
{_signs("[0, -1]", "    kept = Identity (flat)" + chr(10))}
    column = Constant <value_ints: ints = [1]> ()
    scales = Unsqueeze (weights_scales, column)
    parts = Mul (signs, scales)
    weights = ScatterND <reduction: string = "add"> (zeros, rows, parts)
    product = MatMul (weights, x)
    biases = Unsqueeze (bias, column)
    y = Add (product, biases)
}}""",
    "BCQGather": f"""
<domain: "{DOMAIN}", opset_import: ["" : %], doc_string: "rows of a matrix of sums of signs">
BCQGather <hidden_size, clusters, axis>
    (indices, weights_scales, weights_binary, rows, zeros) => (y)
{{
{_signs("[0, -1]", "    kept = Identity (flat)" + chr(10))}
    column = Constant <value_ints: ints = [1]> ()
    scales = Unsqueeze (weights_scales, column)
    parts = Mul (signs, scales)
    weights = ScatterND <reduction: string = "add"> (zeros, rows, parts)
    y = Gather <axis: int = @axis> (weights, indices)
}}""",
}
"""By the operators' names."""


def functions(names: Sequence[str], opset: int) -> list[FunctionProto]:
    """Make the bodies of some of our operators, of standard operators of a version."""
    from onnx import parser

    return [parser.parse_function(BODIES[name].replace("%", str(opset), 1)) for name in names]
