"""Products of 8 bit weights and rows of bytes for the cells of recurrent layers, scaled to steps of
another grid: what ``layers.int8`` has for whole layers, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.value import shape_text
from luciole.kernels import jit
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.dots import add_dots
from luciole.kernels.jit.vector.fixed_point import LIFTED_BYTES
from luciole.kernels.jit.vector.pixels import Places
from luciole.kernels.jit.vector.vectors import Ints
from luciole.kernels.layers.int8.byte_layer import FOUR, ZERO
from luciole.kernels.layers.int8.layer import NO_CODE, Outputs
from luciole.kernels.layers.int8.rescale import Rescaling

STEP_BYTES = FOUR * LANES
"""Bytes of the weights of four inputs and 16 outputs."""

LONG = 8
"""Bytes of an int64."""


class MatrixRecord(Record):
    """Weights in blocks of some vectors of outputs, in steps of four inputs, and the constants that
    bring their sums to another grid: of each block what sums begin with, and the constants of
    ``rescaled``.
    """

    weights: int
    starts: int
    constants: int
    blocks: int
    steps: int


matrix_at = reader(MatrixRecord)


@dataclass(frozen=True)
class Matrix:
    """Weights [outputs, inputs] under rows of INT8, and how their sums become results."""

    weights: Array
    outputs: Outputs

    @classmethod
    def of(
        cls,
        weights: Array,
        bias: Array | None,
        zero_point: int,
        factors: NDArray[np.float64] | np.floating,
    ) -> Matrix | Declined:
        """Make the matrix for rows with a zero point, and the factors of sums; Declined where sums
        or factors are too large for compiled kernels.
        """
        limits = np.iinfo(np.int16)
        to = Rescaling(
            zero_point,
            np.zeros(1, np.int64),
            np.asarray(factors, np.float64),
            0,
            (limits.min, limits.max),
            TensorType.INT16,
        )
        zero = zero_point + ZERO
        if not 0 <= zero < 256:
            return NO_CODE
        outputs = Outputs.of(weights[None], bias, to, zero, exact=False)
        return outputs if isinstance(outputs, Declined) else cls(weights, outputs)

    def check(self, outputs: int, inputs: int) -> None:
        """Raise ExecutionError where a kernel would walk weights of another shape."""
        if self.weights.shape != (outputs, inputs):
            shape, expected = (shape_text(s) for s in (self.weights.shape, (outputs, inputs)))
            raise ExecutionError(f"a compiled kernel would walk {expected} of weights {shape}")

    def keep(self, vectors: int, memory: Memory) -> int:
        """Keep everything in blocks of ``vectors`` times 16 outputs, and return the address of a
        ``MatrixRecord``.
        """
        whole = packed(self.weights, vectors)
        blocks, steps, lanes, _ = whole.shape
        arrays = self.outputs.fixed(lanes, lifted=True)
        starts, constants = arrays["starts"][0], arrays["constants"][0]
        longs = vectors * LIFTED_BYTES // LONG
        record = MatrixRecord(
            weights=memory.keep(whole, blocks, steps, vectors * LANES, FOUR),
            starts=memory.keep(starts, blocks, lanes),
            constants=memory.keep(constants.reshape(blocks, longs), blocks, longs),
            blocks=blocks,
            steps=steps,
        )
        return memory.record(record)


def packed(weights: Array, vectors: int) -> Array:
    """Lay weights out as [blocks, steps of four inputs, outputs of a block, 4], filled up with
    zeros.
    """
    (outputs, inputs), lanes = weights.shape, vectors * LANES
    blocks, steps = -(-outputs // lanes), -(-inputs // FOUR)
    padded = np.zeros((blocks * lanes, steps * FOUR), np.int8)
    padded[:outputs, :inputs] = weights
    return np.ascontiguousarray(padded.reshape(blocks, lanes, steps, FOUR).transpose(0, 2, 1, 3))


def room_for_row(inputs: int, memory: Memory) -> int:
    """Take room for a row of unsigned bytes, filled up with zeros."""
    return memory.scratch(-(-inputs // FOUR))


@jit.inlined
def add_products(tile: Ints, at: Places, weights: int, steps: int, step: int) -> Ints:
    """Add the products of a row of unsigned bytes and a block's weights, ``step`` bytes for four
    inputs.
    """
    for k in range(steps):
        tile = add_dots(tile, at, FOUR * k, weights + step * k)
    return tile
