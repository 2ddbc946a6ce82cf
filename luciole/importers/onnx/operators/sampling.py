"""Images read at any places: GridSample."""

from __future__ import annotations

import itertools
import math

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import first
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import comparisons, logical
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.slice import Slice


@rule("GridSample")
def grid_sample(k: Building, node: Node) -> Value:
    """Read an image [batch, channels, ...] at the places [batch, ..., axes] of a grid from -1 to 1,
    whose last axis begins with the image's last.
    """
    x, grid = node[0], node[1]
    dims, shape = k.dims(x), k.dims(grid)
    axes, count = len(dims) - 2, math.prod(shape[1:-1])
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.text("mode", "linear"))
    mode = mode or node.text("mode", "linear")
    places = [_coordinate(k, node, grid, axes - 1 - i, dims[2 + i], count) for i in range(axes)]
    taps = [_taps(k, place, mode) for place in places]
    flat = k.reshape(
        k.transpose(x, (0, *range(2, axes + 2), 1)), (math.prod(dims) // dims[1], dims[1])
    )
    batch = (np.arange(dims[0]) * math.prod(dims[2:])).astype(np.float32).reshape(-1, 1)
    total: Value | None = None
    for corner in itertools.product(*taps):
        part = _corner(k, node, flat, corner, dims, batch)
        total = part if total is None else k.add(binary.Add(total, part))
    assert total is not None, "there is a corner"
    result = k.reshape(total, (dims[0], *shape[1:-1], dims[1]))
    return first(k, result)


def _coordinate(k: Building, node: Node, grid: Value, slot: int, extent: int, count: int) -> Value:
    """Compute places along one axis, [batch, places], brought into the image where the node says
    so.
    """
    shape = k.dims(grid)
    begin = np.array([*[0] * (len(shape) - 1), slot], np.int32)
    size = np.array([*shape[:-1], 1], np.int32)
    part = k.add(Slice(grid, k.constant(begin), k.constant(size)))
    part = k.reshape(part, (shape[0], count))
    corners = node.flag("align_corners")
    steps = (extent - 1) / 2 if corners else extent / 2
    moved = k.add(binary.Mul(k.add(binary.Add(part, k.like(part, 1))), k.like(part, steps)))
    return moved if corners else k.add(binary.Sub(moved, k.like(part, 0.5)))


def _taps(k: Building, place: Value, mode: str) -> list[tuple[Value, Value | None]]:
    """List the elements that count along one axis: places and shares."""
    if mode == "nearest":
        return [(k.add(unary.Round(place)), None)]
    base = k.add(unary.Floor(place))
    far = k.add(binary.Sub(place, base))
    if mode == "linear":
        near = k.add(binary.Sub(k.like(far, 1), far))
        return [(base, near), (k.add(binary.Add(base, k.like(base, 1))), far)]
    if mode != "cubic":
        raise RefusedError(f"its mode is {mode}")
    taps: list[tuple[Value, Value | None]] = []
    for step in (-1, 0, 1, 2):
        distance = k.add(unary.Abs(k.add(binary.Sub(far, k.like(far, step)))))
        weights = (1.25, -2.25, 0.0, 1.0) if step in (0, 1) else (-0.75, 3.75, -6.0, 3.0)
        taps.append(
            (k.add(binary.Add(base, k.like(base, step))), _polynomial(k, distance, weights))
        )
    return taps


def _polynomial(k: Building, x: Value, weights: tuple[float, ...]) -> Value:
    """Compute Keys' cubic of a distance, with a = -0.75."""
    total = k.add(binary.Mul(x, k.like(x, weights[0])))
    for weight in weights[1:-1]:
        total = k.add(binary.Mul(k.add(binary.Add(total, k.like(x, weight))), x))
    return k.add(binary.Add(total, k.like(x, weights[-1])))


def _corner(
    k: Building,
    node: Node,
    flat: Value,
    corner: tuple[tuple[Value, Value | None], ...],
    dims: tuple[int, ...],
    batch: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> Value:
    """Read one element for each place, times its share: [batch, places, channels]."""
    place, share = k.constant(batch), None
    for axis, (along, weight) in enumerate(corner):
        extent = dims[2 + axis]
        inside, there = _inside(k, node, along, extent)
        steps = k.like(there, math.prod(dims[3 + axis :]))
        place = k.add(binary.Add(place, k.add(binary.Mul(there, steps))))
        for factor in (weight, inside):
            if factor is not None:
                share = factor if share is None else k.add(binary.Mul(share, factor))
    elements = k.add(Gather(flat, k.cast(place, TensorType.INT32), axis=0))
    if share is None:
        return elements
    return k.add(binary.Mul(elements, k.reshape(share, (*share.shape, 1))))


def _inside(k: Building, node: Node, place: Value, extent: int) -> tuple[Value | None, Value]:
    """Bring a place into the image; and 1 where it was inside, 0 elsewhere, where that counts."""
    mode = node.text("padding_mode", "zeros")
    if mode == "reflection":
        place = _reflected(k, place, extent, node.flag("align_corners"))
    low = k.add(binary.Maximum(place, k.like(place, 0)))
    there = k.add(binary.Minimum(low, k.like(place, extent - 1)))
    if mode != "zeros":
        return None, there
    above = k.add(comparisons.GreaterEqual(place, k.like(place, 0)))
    below = k.add(comparisons.LessEqual(place, k.like(place, extent - 1)))
    return k.cast(k.add(logical.LogicalAnd(above, below)), TensorType.FLOAT32), there


def _reflected(k: Building, place: Value, extent: int, corners: bool) -> Value:
    """Reflect at the borders, as often as needed."""
    low, width = (0.0, extent - 1.0) if corners else (-0.5, float(extent))
    if width == 0:
        return k.add(binary.Mul(place, k.like(place, 0)))
    moved = k.add(binary.Sub(place, k.like(place, low)))
    turn = k.add(binary.FloorMod(moved, k.like(place, 2 * width)))
    back = k.add(binary.Sub(k.like(place, 2 * width), turn))
    return k.add(binary.Add(k.add(binary.Minimum(turn, back)), k.like(place, low)))
