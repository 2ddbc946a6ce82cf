"""Compute two layers, one behind the other, on a few inputs, as products of rows and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rules import window
from luciole.lquantizer.calibration.rows import (
    Product,
    bias_of,
    input_rows,
    positions,
    products,
    weight_rows,
)
from luciole.lquantizer.network.rescale import Floats, Pair


@dataclass(frozen=True)
class TwoLayers:
    """A pair's weights [o, n] and the first layer's bias [o]."""

    pair: Pair
    front: Array
    bias: Array
    back: Array

    @classmethod
    def of(cls, pair: Pair, scales: Floats) -> TwoLayers:
        """Multiply the channels in between by scales [channels]."""
        factors, back = scales.astype(np.float32), weight_rows(pair.back)
        if isinstance(pair.back, DepthwiseConv2D):
            back = back / factors[:, None]
        else:
            back = back / np.tile(factors, back.shape[1] // len(factors))
        return cls(
            pair, weight_rows(pair.front) * factors[:, None], bias_of(pair.front) * factors, back
        )

    def between(self, inputs: Array) -> Array:
        """Compute the second layer's inputs, given those of the first [records, ...]."""
        op = self.pair.front
        y = _times(op, inputs, self.front) + self.bias
        return np.asarray(np.clip(y.reshape(_shape(op, inputs, y)), *self.pair.limits))

    def results(self, between: Array) -> Array:
        """Compute the second layer's results without its bias and activation: [rows, o]."""
        return _times(self.pair.back, between, self.back)


@dataclass(frozen=True)
class Rounding:
    """How what two layers read, and their weights [o, n], are rounded."""

    inputs: Callable[[Array], Array]
    front: Callable[[Array, Array], Array]
    """Rounds the first layer's weights, given its bias [o], too."""
    between: Callable[[Array], Array]
    back: Callable[[Array, Array], Array]

    def errors(self, pair: Pair, tried: Sequence[Floats], inputs: Array) -> list[float]:
        """Compute the mean squared error that rounding makes of the second layer's results, for
        each of several scales [channels] of the channels in between.
        """
        read = self.inputs(inputs)
        plain = TwoLayers.of(pair, np.ones_like(tried[0]))
        exact = plain.results(plain.between(inputs))
        return [self._error(TwoLayers.of(pair, scales), read, exact) for scales in tried]

    def _error(self, layers: TwoLayers, read: Array, exact: Array) -> float:
        rounded = replace(
            layers,
            front=self.front(layers.front, layers.bias),
            back=self.back(layers.back, np.zeros(len(layers.back), np.float32)),
        )
        off = rounded.results(self.between(rounded.between(read))) - exact
        return float(np.square(off, dtype=np.float64).mean())


def _times(op: Product, x: Array, weights: Array) -> Array:
    """Multiply all of a layer's rows with weights [o, n]: [rows, o]."""
    count = positions(op, x)
    picks = np.broadcast_to(np.arange(count), (len(x), count))
    return products(input_rows(op, x, picks, masked=False), weights)


def _shape(op: Product, x: Array, y: Array) -> tuple[int, ...]:
    """Find the shape of a layer's results, given its inputs and the rows [rows, o] of these."""
    if isinstance(op, FullyConnected):
        return (len(x), *(n or -1 for n in op.output.shape[1:-1]), y.shape[-1])
    _, kh, kw, _ = op.filter.dims
    height = window(x.shape[-3], kh, op.stride_h, op.dilation_h_factor, op.padding)
    width = window(x.shape[-2], kw, op.stride_w, op.dilation_w_factor, op.padding)
    return (*x.shape[:-3], height or 0, width or 0, y.shape[-1])
