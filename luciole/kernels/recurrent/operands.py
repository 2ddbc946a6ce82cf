"""Products with weights, and operands by name, for the cells of recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, Op, UnsupportedError
from luciole.kernels.layers.int8.hybrid import of_rows, weight_scales

Arrays = Mapping[str, Array]
"""Operands by name; absent ones are left out."""


@dataclass(frozen=True)
class Weights:
    """Weights [outputs, inputs], or the diagonal of a matrix, as float32 or as integers (float64)
    with a scale.
    """

    array: Array
    scale: np.float32 | None = None
    asymmetric: bool = False

    def __call__(self, x: Array) -> Array:
        """Multiply x [batch, inputs] by the weights: [batch, outputs]."""
        if self.array.ndim == 1:
            return np.asarray(x * self.array)
        if self.scale is None:
            return np.asarray(x @ self.array.T)
        steps, scales = of_rows(x, asymmetric=self.asymmetric)
        sums = (steps @ self.array.T).astype(np.float32)
        return np.asarray(sums * (scales * self.scale)[:, None])

    def vector(self) -> Array:
        """Return the weights themselves, in single precision."""
        return self.array if self.scale is None else self.array.astype(np.float32) * self.scale


def named(op: Op, operands: Sequence[Array | None]) -> dict[str, Array]:
    """Return the operands that are there by their names."""
    names = [field.name for field in op.operand_fields()]
    return {name: a for name, a in zip(names, operands, strict=False) if a is not None}


def named_weights(op: Op, arrays: Arrays, asymmetric: bool) -> dict[str, Weights]:
    """Return the weights among the operands, ready to multiply.

    Raises UnsupportedError for weights that are neither FLOAT32 nor symmetric INT8.
    """
    values = dict(op.named_operands())
    weights = {}
    for name in (n for n in arrays if n.endswith("weights") or n.startswith("weights")):
        array, value = arrays[name], values[name]
        if array.dtype == np.float32:
            weights[name] = Weights(array)
        elif array.dtype == np.int8 and value is not None:
            scales = weight_scales(value, 0)
            if len(scales) != 1:
                raise UnsupportedError(f"{name} has {len(scales)} scales, one is needed")
            weights[name] = Weights(array.astype(np.float64), scales[0], asymmetric)
        else:
            raise UnsupportedError(f"{name} is {array.dtype}, float32 or int8 is needed")
    return weights
