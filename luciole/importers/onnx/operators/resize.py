"""Images of another size: along each axis, elements are weighted sums, or picked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import first, last
from luciole.importers.onnx.operators.open_resize import OpenLine, by_scales, by_size, of_mode
from luciole.importers.onnx.operators.shape import extents
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.resize import Resize, ResizeBilinear, ResizeNearestNeighbor
from luciole.ir.rules import PartialInts
from luciole.schema.printable import quoted

Floats = NDArray[np.float64]
_LINEAR = {"half_pixel": "half_pixel_centers", "align_corners": "align_corners"}
"""The option of ResizeBilinear that stands for ONNX's coordinates."""


@dataclass
class Line:
    """One axis: how many elements it has and gets, by which scale, and which part of it counts."""

    before: int
    behind: int
    scale: float
    part: tuple[float, float] = (0.0, 1.0)

    def places(self, transformation: str) -> Floats:
        """Compute where each new element lies among the old: ONNX's Resize."""
        i = np.arange(self.behind, dtype=np.float64)
        whole = self.scale * self.before
        start, end = self.part
        if transformation == "align_corners":
            return i * (self.before - 1) / (whole - 1) if whole != 1 else i * 0
        if transformation == "asymmetric":
            return i / self.scale
        if transformation == "pytorch_half_pixel" and whole == 1:
            return i * 0 - 0.5
        if transformation == "half_pixel_symmetric":
            offset = self.before / 2 * (1 - self.behind / whole)
            return offset + (i + 0.5) / self.scale - 0.5
        if transformation == "tf_crop_and_resize":
            steps = (self.before - 1) / (whole - 1) if whole != 1 else 0.0
            middle = start if whole != 1 else (start + end) / 2
            return i * (end - start) * steps + middle * (self.before - 1)
        if transformation in ("half_pixel", "pytorch_half_pixel"):
            return (i + 0.5) / self.scale - 0.5
        raise RefusedError(f"its coordinates are {transformation}")


@rule("Resize", "Upsample")
def resize(k: Building, node: Node) -> Value:
    """Give an image another size."""
    x, mode = node[0], node.text("mode", "nearest")
    if (node.kind == "Resize" and node.opset < 11) or node.kind == "Upsample":
        transformation, rounding = "asymmetric", "floor"
    else:
        transformation = node.text("coordinate_transformation_mode", "half_pixel")
        rounding = node.text("nearest_mode", "round_prefer_floor")
    if None in x.shape:
        return _open_image(k, node, mode, transformation, rounding)
    lines = _lines(k, node)
    whole = (
        _image(k, x, lines, mode, transformation, rounding) if not node.flag("antialias") else None
    )
    if whole is not None:
        return whole
    for axis, line in enumerate(lines):
        if line.before == line.behind and line.scale == 1 and line.part == (0.0, 1.0):
            continue
        k.budget.spend(line.behind * 8)
        if mode == "nearest":
            picked = _rounded(line.places(transformation), rounding).clip(0, line.before - 1)
            x = k.add(Gather(x, k.int32(picked), axis=axis))
        else:
            x = _weighted(k, x, axis, _weights(k, node, line, mode, transformation))
    return x


def _open_image(k: Building, node: Node, mode: str, transformation: str, rounding: str) -> Value:
    """Change an image of which an extent is open, be it the batch: by circle's operators where they
    compute the same numbers, else axis by axis.
    """
    x, sizes = node[0], node.get(3) if node.kind == "Resize" and node.opset >= 11 else None
    if node.flag("antialias") or node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise RefusedError(f"the shape of {quoted(x.name)} is not known")
    options = _options(mode, transformation, rounding)
    axes = [k.axis(a, x) for a in node.integers("axes", list(range(len(x.shape))))]
    if sizes is not None:
        whole = _of_sizes(k, x, axes, sizes, options) if mode == "linear" else None
        lines = [] if whole is not None else _size_lines(k, x, axes, sizes)
    else:
        factors = dict(zip(axes, _targets(k, node)[2], strict=True))
        whole = _whole_times(k, x, factors, options)
        lines = [by_scales(k, x, a, n) for a, n in factors.items() if n != 1 and whole is None]
    if whole is not None:
        return whole
    change, dtype = of_mode(mode, transformation, rounding), x.dtype
    x = k.cast(x, TensorType.FLOAT32) if mode == "linear" else x
    for line in lines:
        x = change(x, line)
    return k.cast(x, dtype)


_Options = tuple[type[Resize], dict[str, bool]]


def _whole_times(
    k: Building, x: Value, factors: Mapping[int, float], options: _Options | None
) -> Value | None:
    """Make an image a whole number of times as large, None for other factors."""
    times = [factors.get(axis, 1.0) for axis in range(len(x.shape))]
    is_whole = len(times) == 4 and times[:2] == [1, 1] and all(n == int(n) >= 1 for n in times)
    if not is_whole or options is None:
        return None
    image = last(k, x)
    pixels = k.cast(extents(k, image, 1, 3), TensorType.INT32)
    size = k.add(Mul(pixels, k.int32(times[2:])))
    return first(k, k.make(options[0], (image, size), **options[1]))


def _of_sizes(
    k: Building, x: Value, axes: Sequence[int], sizes: Value, options: _Options | None
) -> Value | None:
    """Give an image another height and width, None for other changes. RESHAPE refuses sizes that
    say another batch when the network runs.
    """
    known = PartialInts()(sizes)
    if options is None or x.dtype != TensorType.FLOAT32 or known is None or len(x.shape) != 4:
        return None
    named = dict(zip(axes, known, strict=True))
    kept = all(named.get(a, x.shape[a]) in (None, x.shape[a]) for a in (0, 1))
    if not kept or not {2, 3} <= {*axes}:
        return None
    numbers = k.cast(sizes, TensorType.INT32)
    parts = [k.add(Gather(numbers, k.int32([axes.index(a)]), axis=0)) for a in (2, 3)]
    size = k.add(Concatenation(tuple(parts), axis=0))
    image = first(k, k.make(options[0], (last(k, x), size), **options[1]))
    says_all = list(axes) == [0, 1, 2, 3] and None in known[:2]
    return k.add(Reshape(image, numbers)) if says_all else image


def _size_lines(k: Building, x: Value, axes: Sequence[int], sizes: Value) -> list[OpenLine]:
    """List the axes whose size is another one, or may be."""
    known = PartialInts()(sizes) or [None] * len(axes)
    lines = []
    for slot, (axis, size) in enumerate(zip(axes, known, strict=True)):
        if size is None or size != x.shape[axis]:
            number = k.add(Gather(sizes, k.int32([slot]), axis=0))
            lines.append(by_size(k, x, axis, number))
    return lines


def _options(mode: str, transformation: str, rounding: str) -> _Options | None:
    """Find circle's operator, and its options, for a whole number of times the size; None where
    there is none.
    """
    floors = transformation == "asymmetric" and rounding == "floor"
    centres = transformation == "half_pixel" and rounding.startswith("round")
    if mode == "nearest" and (floors or centres):
        return ResizeNearestNeighbor, {}
    if mode == "linear" and transformation in (*_LINEAR, "asymmetric"):
        return ResizeBilinear, {_LINEAR[transformation]: True} if transformation in _LINEAR else {}
    return None


def _lines(k: Building, node: Node) -> list[Line]:
    """Read the change of each axis."""
    dims = k.dims(node[0])
    sizes, parts, scales = _targets(k, node)
    axes = [k.axis(a, node[0]) for a in node.integers("axes", list(range(len(dims))))]
    targets = sizes or scales
    if not targets or len(targets) != len(axes):
        raise RefusedError("neither sizes nor scales are given")
    lines = [Line(n, n, 1.0) for n in dims]
    factors = [g / dims[a] if sizes else g for g, a in zip(targets, axes, strict=True)]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if sizes and policy != "stretch":
        factors = [(min if policy == "not_larger" else max)(factors)] * len(axes)
    for slot, (axis, factor) in enumerate(zip(axes, factors, strict=True)):
        exact = factor * dims[axis]
        size = targets[slot] if sizes and policy == "stretch" else math.floor(exact)
        if sizes and policy != "stretch":
            size = math.floor(exact + 0.5)
        if not 0 < size < 1 << 31 or factor <= 0:
            raise RefusedError(f"an axis gets {size} elements")
        line = Line(dims[axis], int(size), factor)
        if parts and node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
            line.part = parts[slot], parts[slot + len(axes)]
        lines[axis] = line
    return lines


def _targets(k: Building, node: Node) -> tuple[list[float], list[float], list[float]]:
    """Read the sizes, the parts and the scales that a node of any version names, empty where it
    names none.
    """
    is_old = node.kind == "Upsample" or node.opset < 11
    slots = (None, None, 1) if is_old else (3, 1, 2)
    sizes, parts, scales = ([] if s is None else _numbers(k, node, s) for s in slots)
    return sizes, parts, node.numbers("scales") if node.has("scales") else scales


def _numbers(k: Building, node: Node, slot: int) -> list[float]:
    value = node.get(slot)
    return [] if value is None else [float(n) for n in k.known(value).reshape(-1)]


def _image(
    k: Building, x: Value, lines: list[Line], mode: str, transformation: str, rounding: str
) -> Value | None:
    """Use circle's operators on images where they compute the same numbers; None elsewhere."""
    plain = len(lines) == 4 and x.dtype == TensorType.FLOAT32
    if not plain or any(line.before != line.behind for line in lines[:2]):
        return None
    exact = all(abs(line.scale * line.before - line.behind) < 1e-6 for line in lines)
    whole = all(line.behind % line.before == 0 for line in lines)
    size = k.constant(np.array([line.behind for line in lines[2:]], np.int32))
    options = _options(mode, transformation, rounding)
    if options is None or not exact or (mode == "nearest" and not whole):
        return None
    return first(k, k.make(options[0], (last(k, x), size), **options[1]))


def _rounded(places: Floats, rounding: str) -> Floats:
    if rounding == "floor":
        return np.floor(places)
    if rounding == "ceil":
        return np.ceil(places)
    if rounding == "round_prefer_ceil":
        return np.floor(places + 0.5)
    return np.ceil(places - 0.5)


def _weights(k: Building, node: Node, line: Line, mode: str, transformation: str) -> Floats:
    """Compute the share of each old element in each new one: [new, old]."""
    places = line.places(transformation)
    scale = min(line.scale, 1.0) if node.flag("antialias") else 1.0
    a = node.number("cubic_coeff_a", -0.75)
    share: Callable[[Floats], Floats] = _hat if mode == "linear" else lambda d: _cubic(d, a)
    if mode not in ("linear", "cubic"):
        raise RefusedError(f"its mode is {mode}")
    reach = math.ceil((1 if mode == "linear" else 2) / scale)
    base = np.floor(places)
    weights = k.filled((line.behind, line.before), 0, np.float64)
    outside = node.flag("exclude_outside")
    for step in range(-reach, reach + 2):
        there = base + step
        shares = share((there - places) * scale)
        inside = (there >= 0) & (there < line.before)
        shares = np.where(inside | (not outside), shares, 0)
        columns = there.clip(0, line.before - 1).astype(np.int64)
        np.add.at(weights, (np.arange(line.behind), columns), shares)
    weights /= weights.sum(1, keepdims=True)
    if transformation == "tf_crop_and_resize" and ((places < 0) | (places > line.before - 1)).any():
        raise RefusedError("its part reaches out of the image")
    return weights


def _hat(distance: Floats) -> Floats:
    return (1 - abs(distance)).clip(0)


def _cubic(distance: Floats, a: float) -> Floats:
    """Interpolate as Keys 1981, "Cubic convolution interpolation for digital image processing"."""
    x = abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _weighted(k: Building, x: Value, axis: int, weights: Floats) -> Value:
    """Multiply the elements along an axis by a matrix."""
    rank, dtype = len(x.shape), x.dtype
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = k.transpose(k.cast(x, TensorType.FLOAT32), order)
    dims = k.dims(moved)
    flat = k.reshape(moved, (1, math.prod(dims[:-1]), dims[-1]))
    matrix = k.constant(weights.T.astype(np.float32)[None])
    products = k.reshape(k.add(BatchMatMul(flat, matrix)), (*dims[:-1], len(weights)))
    return k.cast(k.transpose(products, [int(i) for i in np.argsort(order)]), dtype)
