"""Blockwise quantization: integers of a constant with a scale for each block of neighbours along
the last axis. The scales are another tensor of the graph, as in TFLite's BlockwiseQuantization.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import Array, byte_count, element_bits, integer_range, limits_of
from luciole.ir.errors import LucioleError
from luciole.ir.quantization import is_affine, rounded
from luciole.ir.value import Value, element_count, shape_text
from luciole.schema.enums import TensorType
from luciole.schema.tables import BlockwiseQuantization, QuantizationParameters

SCALES = (TensorType.FLOAT16, TensorType.FLOAT32)
LEAST_SCALE, _MOST_SCALE = 2.0**-14, 2.0**15
"""The smallest scale of half precision that has all its bits, and a large one."""
_BFLOAT_PARTS = 2**8
"""Parts that bfloat16 has of the numbers from 1/2 to 1."""


def blocks_of(value: Value) -> BlockwiseQuantization | None:
    """Return a tensor's table of blocks, None where it is quantized in another way."""
    table = value.quantization
    details = None if table is None else table.details
    return details if isinstance(details, BlockwiseQuantization) else None


def is_coded(value: Value) -> bool:
    """Check whether a tensor has scales: one, one for each channel or one for each block."""
    return is_affine(value) or blocks_of(value) is not None


def stored_scales(scales: Array) -> NDArray[np.float32]:
    """Round scales to numbers that half precision and bfloat16 both hold: LiteRT's files have the
    first, XNNPACK computes with the second.
    """
    part, exponent = np.frexp(np.clip(scales, LEAST_SCALE, _MOST_SCALE))
    kept = np.rint(part * _BFLOAT_PARTS) / _BFLOAT_PARTS
    return np.asarray(np.ldexp(kept, exponent), np.float32)


def set_blocks(value: Value, scales: Value) -> None:
    """Give a tensor's rows blocks, of which ``scales`` [.., blocks] has one for each."""
    size = value.dims[-1] // scales.dims[-1]
    details = BlockwiseQuantization(scales=0, zero_points=-1, block_size=size)
    value.quantization = QuantizationParameters(details=details)
    value.block_tensors = scales, None


@dataclass(frozen=True, eq=False)
class Blockwise:
    """Real numbers are scale (q - zero point), one of each for every ``size`` integers in a row;
    ``scale`` [blocks] float32 and ``points`` [blocks] int64 are those of all rows.
    """

    scale: NDArray[np.float32]
    points: NDArray[np.int64]
    size: int
    dtype: TensorType

    @classmethod
    def given(cls, value: Value) -> Blockwise | None:
        """Read a tensor's blocks, None where it is quantized in another way.

        Raises LucioleError where scales are not there, or do not fit the tensor.
        """
        details = blocks_of(value)
        if details is None:
            return None
        last = value.dims[-1] if value.dims else 0
        if details.block_size < 1 or last % details.block_size:
            raise LucioleError(
                f"tensor {value.name!r} {shape_text(value.shape)} does not have whole blocks of "
                f"{details.block_size}"
            )
        count = element_count(value.dims) // details.block_size
        scale = _contents(value.block_tensors[0], count, f"scales of tensor {value.name!r}", SCALES)
        return cls(scale.astype(np.float32), _points(value, count), details.block_size, value.dtype)

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return element_bits(self.dtype) or 0

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 is the code of 0 in each block."""
        return not self.points.any()

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Compute the real numbers that codes stand for."""
        rows = codes.reshape(-1, self.size).astype(np.float64) - self.points[:, None]
        real: NDArray[np.float64] = (rows * self.scale[:, None]).reshape(codes.shape)
        return real

    def entries(self, indices: NDArray[np.intp], shape: tuple[int, ...]) -> Blockwise:
        """Take the blocks of some entries of axis 0 of a tensor of this shape."""
        rows = (max(shape[0], 1), -1)
        scale, points = self.scale.reshape(rows)[indices], self.points.reshape(rows)[indices]
        return replace(self, scale=scale.reshape(-1), points=points.reshape(-1))

    def encode(self, x: Array) -> Array:
        """Find the nearest codes of real numbers, halves away from zero, saturated."""
        steps = rounded(x.reshape(-1, self.size) / self.scale[:, None].astype(np.float64))
        codes = np.clip(steps + self.points[:, None], *limits_of(self.dtype))
        return np.asarray(codes.reshape(x.shape), np.int64)

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that a tensor of this shape takes in a file, with two for a scale."""
        return (byte_count(self.dtype, element_count(shape)) or 0) + 2 * len(self.scale)


def misfit_blocks(value: Value) -> Iterator[str]:
    """List faults of a constant's blocks."""
    try:
        if value.is_constant:
            Blockwise.given(value)
    except LucioleError as error:
        yield str(error)


def _points(value: Value, count: int) -> NDArray[np.int64]:
    """Read zero points: 0 where a file has none, or says so by naming something else."""
    _, named = value.block_tensors
    if named is None or integer_range(named.dtype) is None or not named.is_constant:
        return np.zeros(count, np.int64)
    kinds = (named.dtype,)
    points = _contents(named, count, f"zero points of tensor {value.name!r}", kinds)
    return points.astype(np.int64)


def _contents(value: Value | None, count: int, what: str, kinds: tuple[TensorType, ...]) -> Array:
    """Return a constant of ``count`` numbers, flat."""
    data = None if value is None else value.data
    if value is None or data is None:
        raise LucioleError(f"{what} are not constant")
    if value.dtype not in kinds:
        raise LucioleError(f"{what} are {value.dtype.name}, {kinds[0].name} is needed")
    if data.size != count:
        raise LucioleError(f"there are {data.size} {what}, {count} blocks need one each")
    return data.reshape(-1)
