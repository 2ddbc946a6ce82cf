"""Images of which an extent is open, of another size: places are computed when the network runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.operators.shape import extents, with_axes
from luciole.ir import TensorType, Value
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.elementwise_unary import Ceil, Floor
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.range import Range

_ROUNDED: dict[str, tuple[float, type[Floor] | type[Ceil]]] = {
    "floor": (0.0, Floor),
    "ceil": (0.0, Ceil),
    "round_prefer_floor": (-0.5, Ceil),
    "round_prefer_ceil": (0.5, Floor),
}
"""What is added to a place before it is rounded down or up."""


@dataclass(frozen=True)
class OpenLine:
    """One axis of an image: extents before and behind, and the scale, numbers of FLOAT32."""

    k: Building
    axis: int
    before: Value
    behind: Value
    scale: Value

    def places(self, transformation: str) -> Value:
        """Compute where each new element lies among the old, [behind]: ONNX's Resize."""
        k, one = self.k, self._number(1)
        i = k.add(Range(self._number(0), self.behind, one))
        last = k.add(Sub(self.behind, one))
        if transformation == "asymmetric":
            return k.add(Div(i, self.scale))
        if transformation == "align_corners":
            spaces = k.add(Maximum(last, one))
            return k.add(Div(k.add(Mul(i, k.add(Sub(self.before, one)))), spaces))
        if transformation not in ("half_pixel", "pytorch_half_pixel"):
            raise RefusedError(f"its coordinates are {transformation}, of an open extent")
        centres = k.add(Div(k.add(Add(i, self._number(0.5))), self.scale))
        places = k.add(Sub(centres, self._number(0.5)))
        if transformation == "half_pixel":
            return places
        return k.add(Mul(places, k.add(Minimum(last, one))))  # one element is the first one

    def picked(self, x: Value, places: Value, rounding: str) -> Value:
        """Pick the nearest elements."""
        moved, cls = _ROUNDED[rounding]
        shifted = self.k.add(Add(places, self._number(moved))) if moved else places
        return self._gathered(x, self._inside(self.k.add(cls(shifted))))

    def mixed(self, x: Value, places: Value) -> Value:
        """Mix the elements before and behind each place by its distance from them."""
        k, inside = self.k, self._inside(places)
        low = k.add(Floor(inside))
        high = self._inside(k.add(Add(low, self._number(1))))
        share = k.add(Sub(inside, low))
        share = with_axes(k, share, range(1, len(x.shape) - self.axis))
        first, second = self._gathered(x, low), self._gathered(x, high)
        return k.add(Add(first, k.add(Mul(k.add(Sub(second, first)), share))))

    def _gathered(self, x: Value, places: Value) -> Value:
        return self.k.add(Gather(x, self.k.cast(places, TensorType.INT32), axis=self.axis))

    def _inside(self, places: Value) -> Value:
        last = self.k.add(Sub(self.before, self._number(1)))
        return self.k.add(Minimum(self.k.add(Maximum(places, self._number(0))), last))

    def _number(self, number: float) -> Value:
        return self.k.constant(np.float32(number))


def by_scales(k: Building, x: Value, axis: int, scale: float) -> OpenLine:
    """Return an axis that gets a number of times its elements, rounded down."""
    before, times = _extent(k, x, axis), k.constant(np.float32(scale))
    return OpenLine(k, axis, before, k.add(Floor(k.add(Mul(before, times)))), times)


def by_size(k: Building, x: Value, axis: int, size: Value) -> OpenLine:
    """Return an axis that gets as many elements as a number says."""
    before, behind = _extent(k, x, axis), k.cast(k.reshape(size, ()), TensorType.FLOAT32)
    return OpenLine(k, axis, before, behind, k.add(Div(behind, before)))


def _extent(k: Building, x: Value, axis: int) -> Value:
    return k.cast(k.reshape(extents(k, x, axis, axis + 1), ()), TensorType.FLOAT32)


def of_mode(mode: str, transformation: str, rounding: str) -> Callable[[Value, OpenLine], Value]:
    """Return a function that gives an image another extent along one axis. Raises RefusedError for
    modes whose weights depend on extents.
    """
    if mode not in ("nearest", "linear") or rounding not in _ROUNDED:
        raise RefusedError(f"its mode is {mode}, of an open extent")

    def changed(x: Value, line: OpenLine) -> Value:
        places = line.places(transformation)
        return line.picked(x, places, rounding) if mode == "nearest" else line.mixed(x, places)

    return changed
