"""Describe a tensor for the page: type, shape, quantization in words and as a formula, contents."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from luciole.drawing.blobs import Blobs
from luciole.drawing.text import TIMES, dims, rounded, shown_name
from luciole.ir import Array, GraphError, LucioleError, Value
from luciole.ir.analysis.decoded import decoded
from luciole.ir.blockwise import Blockwise, blocks_of
from luciole.ir.dtypes import element_bits, integer_range
from luciole.ir.microscaling import BLOCK, axis_of
from luciole.ir.ops.minifloat import minifloat_of
from luciole.ir.quantization import Affine
from luciole.ir.value import element_count
from luciole.schema.tables import QuantizationParameters

Json = dict[str, Any]

BINS = 64
MOST_CHANNELS = 4096
"""Scales of a tensor with one for each channel that the page holds."""

MOST_COUNTED = 1 << 20
"""Elements of a constant that are summed up and counted: of more, every second, third, ..."""


def tensor_json(value: Value, identity: str, blobs: Blobs) -> Json:
    """Describe a tensor without its place in the graph."""
    data, why = _contents(value, blobs)
    facts: Json = {
        "id": identity,
        "name": shown_name(value.name),
        "dtype": value.dtype.name.lower(),
        "shape": list(value.shape),
        "text": dims(value.shape),
    }
    if value.is_constant:
        facts["bytes"] = 0 if value.buffer is None else len(value.buffer)
    if value.is_variable:
        facts["variable"] = True
    clipped: float | None = None
    if data is not None and data.size:
        facts["values"] = blobs.add(data)
        facts["contents"] = blobs.once(_bytes_of("facts", value), lambda: contents_json(data))
        clipped = blobs.once(_bytes_of("ends", value), lambda: _clipped(value, data))
    if why:
        facts["why"] = why
    quantization = quantization_json(value, clipped)
    if quantization:
        facts["quantization"] = quantization
    return facts


def _bytes_of(what: str, value: Value) -> Hashable:
    """Return a key that tensors share whose contents are the same, except for their shape."""
    held = id(value.buffer if value.is_constant else value)
    return what, held, value.dtype, element_count(value.dims)


def _contents(value: Value, blobs: Blobs) -> tuple[Array | None, str | None]:
    """Return a constant's array, or why it has none that can be shown."""
    if not value.is_constant:
        return _decoded(value), None
    if value.sparsity is not None:
        return None, "stored sparse: its values are not unpacked"
    try:
        data = blobs.once(_bytes_of("data", value), lambda: value.data)
        if data is None:
            return None, f"{value.dtype.name} has no plain values"
        return data.reshape(value.dims), None
    except (GraphError, ValueError) as error:
        return None, str(error)


def _decoded(value: Value) -> Array | None:
    """Return the numbers of a tensor that is read from codes, None for another one."""
    codes = decoded(value)
    return None if codes is None else codes.values()


def contents_json(data: Array) -> Json | None:
    """Describe contents: minimum, maximum, mean, deviation, share of zeros, and a histogram. None
    for what has no order. ``every`` is there when not all values were looked at.
    """
    if data.dtype.kind == "c":
        return None
    every = -(-data.size // MOST_COUNTED)
    numbers = data.reshape(-1)[::every].astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    figures = {"min": low, "max": high, "mean": finite.mean(), "deviation": finite.std()}
    figures["zeros"] = (numbers == 0).mean()
    facts: Json = {name: rounded(float(figure)) for name, figure in figures.items()}
    if every > 1:
        facts["every"] = every
    if len(finite) < len(numbers):
        facts["not_finite"] = len(numbers) - len(finite)
    if high > low and len(finite) >= 8:
        facts["histogram"] = _histogram(finite, low, high, data.dtype.kind in "iub")
    return facts


def _histogram(numbers: Array, low: float, high: float, whole: bool) -> Json:
    if whole and high - low < 256:
        low, high = low - 0.5, high + 0.5
        counts = np.bincount((numbers - low).astype(np.intp), minlength=round(high - low))
    else:
        counts = np.histogram(numbers, BINS, (low, high))[0]
    return {"low": rounded(low), "high": rounded(high), "counts": counts.tolist()}


def quantization_json(value: Value, clipped: float | None) -> Json | None:
    """Describe scales and zero points in words, as a formula and as numbers; ``clipped`` is the
    share of a constant's elements that are at the end codes.
    """
    if blocks_of(value) is not None:
        return _blocks_json(value)
    floating = _floating_json(value)
    if floating is not None:
        return floating
    affine = Affine.given(value)
    return None if affine is None else _affine_json(value, affine, clipped)


def _affine_json(value: Value, affine: Affine, clipped: float | None) -> Json:
    scales, zeros = (numbers.astype(np.float64) for numbers in affine.parameters)
    facts: Json = {"words": _words(affine), "formula": formula(scales, zeros)}
    facts |= {"scale": _numbers(scales), "zero": _numbers(zeros), "axis": affine.axis}
    ends = integer_range(value.dtype)
    if ends is not None:
        lows, highs = affine.range
        facts["range"] = [rounded(float(lows.min())), rounded(float(highs.max()))]
        facts["codes"] = list(ends)
        if clipped is not None:
            facts["clipped"] = rounded(clipped)
    return facts if value.quantization is None else facts | _observed(value.quantization)


def _floating_json(value: Value) -> Json | None:
    """Describe numbers with an exponent, of their own or shared; None for other ones."""
    axis, numbers = axis_of(value), minifloat_of(value)
    if axis is not None:
        words = f"{value.dtype.name}: {BLOCK} numbers along axis {axis} share a power of two"
        return {"words": words, "formula": f"real = 2^s {TIMES} q", "scale": [], "zero": []}
    if numbers is None:
        return None
    words = f"minifloat {numbers} of {numbers.bits} bits, up to {numbers.largest:g}"
    exact = f"real = (-1)^s {TIMES} 2^(E - {numbers.top - numbers.shift}) {TIMES} 1.M"
    return {"words": words, "formula": exact, "scale": [], "zero": []}


def _blocks_json(value: Value) -> Json | None:
    """Describe blocks in words and as a formula; None where ``verify`` finds them wrong."""
    try:
        blocks = Blockwise.given(value)
    except LucioleError:
        return None
    if blocks is None or not len(blocks.scale):
        return None
    words = f"{blocks.bits} bit, evenly spaced, a scale for each {blocks.size} along the last axis"
    shown = formula(blocks.scale, blocks.points)
    return {"words": words, "formula": shown, "scale": [], "zero": []}


def _clipped(value: Value, data: Array) -> float | None:
    ends = integer_range(value.dtype)
    if ends is None or data.dtype.kind == "f":  # what codes of levels stand for
        return None
    return float(np.isin(data, _outermost(ends, data)).mean())


def _outermost(ends: tuple[int, int], data: Array) -> list[int]:
    return [end for end in ends if np.iinfo(data.dtype).min <= end <= np.iinfo(data.dtype).max]


def _observed(q: QuantizationParameters) -> Json:
    if q.min is None or q.max is None or len(q.min) != 1 or len(q.max) != 1:
        return {}
    return {"observed": [rounded(float(q.min[0])), rounded(float(q.max[0]))]}


def _words(affine: Affine) -> str:
    bits, count = element_bits(affine.dtype), len(affine.scale)
    width = f"{bits} bit" if bits else affine.dtype.name.lower()
    if count == 1:
        return f"{width}, evenly spaced, one scale for the whole tensor"
    return f"{width}, evenly spaced, {count} scales along axis {affine.axis}"


def formula(scales: Array, zeros: Array) -> str:
    """Write the number that a code q stands for; several scales as their range."""
    low, high = float(scales.min()), float(scales.max())
    scale = f"{low:.6g}" if low == high else f"[{low:.3g} … {high:.3g}]"
    if len(set(zeros.tolist())) > 1:
        return f"real = {scale} {TIMES} (q - zero point of the channel)"
    zero = int(zeros[0]) if len(zeros) else 0
    if not zero:
        return f"real = {scale} {TIMES} q"
    return f"real = {scale} {TIMES} (q {'+' if zero < 0 else '-'} {abs(zero)})"


def _numbers(array: Array) -> list[float | None]:
    return [rounded(float(x)) for x in array[:MOST_CHANNELS]]
