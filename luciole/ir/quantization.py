"""Affine quantization: integers that stand for real numbers, scale (q - zero point).

This is the only place that reads what a file's QuantizationParameters say. The scheme is that of
Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", equation 1, and of TFLite's 8-bit quantization specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import (
    Array,
    array_type,
    byte_count,
    element_bits,
    integer_range,
    limits_of,
)
from luciole.ir.errors import LucioleError
from luciole.ir.value import Shape, Value, element_count, shape_text
from luciole.schema.enums import TensorType
from luciole.schema.tables import QuantizationParameters

Floats = NDArray[np.float32]
Points = NDArray[np.int64]

ACTIVATIONS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
"""Element types of quantized tensors that operators compute."""


@dataclass(frozen=True, eq=False)
class Affine:
    """How integers of a type stand for real numbers: one scale and zero point for all of them, or
    one for each index of an axis.
    """

    scale: Floats
    zero_point: Points
    axis: int
    dtype: TensorType

    @classmethod
    def single(cls, scale: float, zero_point: int, dtype: TensorType) -> Affine:
        """Make one scale and zero point for a whole tensor."""
        return cls.channels(np.array([scale]), np.array([zero_point]), 0, dtype)

    @classmethod
    def channels(cls, scale: Array, zero_point: Array, axis: int, dtype: TensorType) -> Affine:
        """Make a scale and zero point for each index of an axis."""
        return cls(scale.astype(np.float32), zero_point.astype(np.int64), axis, dtype)

    @classmethod
    def given(cls, value: Value) -> Affine | None:
        """Read a tensor's quantization, None where it has no scale. A wrong number of zero points
        is made to fit: ``of`` refuses it.
        """
        scale, points = stored_parameters(value)
        if value.quantization is None or not len(scale):
            return None
        if points.shape != scale.shape:
            points = np.resize(points, scale.shape)
        return cls(scale, points, _axis(value, value.quantization), value.dtype)

    @classmethod
    def of(cls, value: Value, name: str, *, only_read: bool = False) -> Affine:
        """Read a tensor's quantization. Raises LucioleError in ``name``'s name where it is missing
        or impossible (``only_read`` as ``faults`` has it).
        """
        for fault in faults(value, name, only_read=only_read):
            raise LucioleError(fault)
        affine = cls.given(value)
        assert affine is not None  # else there was a fault
        return affine

    @classmethod
    def of_tensor(cls, value: Value, name: str) -> Affine:
        """Read the quantization of a tensor with one scale. Raises LucioleError where it has
        several.
        """
        affine = cls.of(value, name)
        if affine.scale.size != 1:
            raise LucioleError(f"{name} has {affine.scale.size} scales; one is needed")
        return affine

    @classmethod
    def of_weights(cls, value: Value, axis: int, *, any_zero: bool = False) -> Affine:
        """Read the quantization of a layer's weights: one scale, or one for each index of ``axis``,
        the outputs.

        Raises LucioleError for scales of another axis, and for zero points; with ``any_zero``, that
        of one scale may be another than 0, and those of UINT8 may all be.
        """
        affine = cls.of(value, "the weights tensor", only_read=True)
        if affine.scale.size > 1 and affine.axis != axis:
            raise LucioleError(
                f"the weights tensor has its scales along axis {affine.axis}, not {axis}"
            )
        single = affine.scale.size == 1 or value.dtype == TensorType.UINT8
        if not affine.is_symmetric and not (single and any_zero):
            points = sorted({int(n) for n in affine.zero_point})
            raise LucioleError(f"the weights tensor has zero points {points}; 0 is needed")
        return affine

    @property
    def bits(self) -> int:
        """Bits of one code."""
        width = element_bits(self.dtype)
        assert width is not None  # integers have one
        return width

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest code."""
        return limits_of(self.dtype)

    @property
    def range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The real numbers of the smallest and of the largest code, for each scale."""
        flat = replace(self, axis=0)
        low, high = (flat.decode(np.full(self.scale.shape, code)) for code in self.limits)
        return low, high

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 is the code of 0 for each scale."""
        return not self.zero_point.any()

    @property
    def parameters(self) -> tuple[Floats, Points]:
        """Scales and zero points, as many of one as of the other."""
        return self.scale, self.zero_point

    @property
    def text(self) -> str:
        """The first scale and zero point, in words."""
        return f"scale {self.scale[0]:.9g}, zero point {self.zero_point[0]}"

    def signs(self, codes: Array | None = None) -> set[int]:
        """Find the signs (-1, 0, 1) of the numbers that codes, or all that there are, stand for.
        Raises LucioleError where scales do not stretch to them.
        """
        if codes is None:
            low, high = self.limits
            steps = np.arange(low, high + 1)[:, None] - self.zero_point
        else:
            steps = codes.astype(np.int64) - self.along(codes.shape)[1]
        return set(np.unique(np.sign(steps)).tolist())

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that a tensor of this shape takes in a file, scales and zero points
        included.
        """
        codes = byte_count(self.dtype, element_count(shape))
        assert codes is not None  # integers have a fixed size
        return codes + self.scale.nbytes + self.zero_point.nbytes

    def along(self, shape: tuple[int, ...]) -> tuple[Floats, Points]:
        """Return scales and zero points, shaped to stretch to ``shape``. Raises LucioleError where
        they do not.
        """
        axes = [1] * len(shape)
        if self.scale.size != 1:
            if shape[self.axis] != self.scale.size:
                raise LucioleError(f"{self.scale.size} scales do not fit the axes {list(shape)}")
            axes[self.axis] = self.scale.size
        return self.scale.reshape(axes), self.zero_point.reshape(axes)

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Compute the real numbers that codes stand for."""
        scale, points = self.along(codes.shape)
        real: NDArray[np.float64] = codes.astype(np.float64)
        real -= points
        real *= scale.astype(np.float64)
        return real

    def encode(self, x: Array) -> Array:
        """Find the nearest codes of real numbers, halves away from zero, saturated; NaN gets the
        lowest.

        The quotient is computed in the floating-point type of x: TFLite's kernels compute it in
        float32.
        """
        scale, points = self.along(x.shape)
        low, high = self.limits
        with np.errstate(all="ignore"):
            nearest = rounded(np.asarray(x / scale.astype(x.dtype), np.float64))
            nearest += points
        np.fmax(nearest, low, out=nearest)  # of NaN and a number the number
        beyond = nearest >= high
        nearest[beyond] = 0  # the highest is no float64 where it is INT64's: processors differ
        codes = nearest.astype(array_type(self.dtype))
        codes[beyond] = high
        return codes

    def entries(self, indices: NDArray[np.intp], shape: tuple[int, ...]) -> Affine:
        """Take the scales of some entries of axis 0 of a tensor of this shape. Raises LucioleError
        where the scales do not fit the shape.
        """
        self.along(shape)
        if self.scale.size == 1 or self.axis != 0:
            return self
        return replace(self, scale=self.scale[indices], zero_point=self.zero_point[indices])

    def shifted(self, dtype: TensorType) -> Affine:
        """Return the same numbers with another element type of as many bits."""
        moved = limits_of(dtype)[0] - self.limits[0]
        return replace(self, zero_point=self.zero_point + moved, dtype=dtype)

    def same_numbers(self, other: Affine) -> bool:
        """Return whether equal codes stand for equal numbers."""
        same_scale = np.array_equal(self.scale, other.scale)
        same_zero = np.array_equal(self.zero_point, other.zero_point)
        return same_scale and same_zero and (self.scale.size == 1 or self.axis == other.axis)

    def keeps_codes(self, other: Affine) -> bool:
        """Return whether a rescaling to other numbers of the same type would change no code: each
        code's number lies within half a step of what the code stands for there. Both have one
        scale.
        """
        codes = np.array(self.limits)  # between them the distance is no larger: it is linear
        apart = np.abs(other.decode(codes) - self.decode(codes))
        return bool((apart <= other.scale.astype(np.float64) / 2).all())

    def table(self) -> QuantizationParameters:
        """Make a file's table of the scales and zero points."""
        return QuantizationParameters(
            scale=self.scale, zero_point=self.zero_point, quantized_dimension=self.axis
        )


def stored_parameters(value: Value) -> tuple[Floats, Points]:
    """Return scales and zero points as a file has them, empty where it has none."""
    table = value.quantization
    scale = None if table is None else table.scale
    points = None if table is None else table.zero_point
    return (
        np.zeros(0, np.float32) if scale is None else np.asarray(scale, np.float32),
        np.zeros(0, np.int64) if points is None else np.asarray(points, np.int64),
    )


def without_points(value: Value) -> QuantizationParameters | None:
    """Copy a tensor's table without its zero points, of which there is one of 0 for each scale;
    None for others.
    """
    scales, points = stored_parameters(value)
    if value.quantization is None or not len(scales):
        return None
    if len(points) != len(scales) or points.any():
        return None
    table = copy(value.quantization)
    table.zero_point = None
    return table


def add_points(value: Value) -> None:
    """Give a tensor that has scales without zero points one of 0 for each."""
    scales, points = stored_parameters(value)
    if value.quantization is not None and not len(points):
        table = copy(value.quantization)
        table.zero_point = np.zeros(len(scales), np.int64)
        value.quantization = table


def noted_range(value: Value) -> tuple[float, float] | None:
    """Return the least and the largest number that a tensor reaches, where its file notes them: one
    of each.
    """
    table = value.quantization
    if table is None or table.min is None or table.max is None:
        return None
    if len(table.min) != 1 or len(table.max) != 1:
        return None
    return float(table.min[0]), float(table.max[0])


def note_range(value: Value, reach: tuple[float, float]) -> None:
    """Note the least and the largest number that a tensor reaches, beside its scales."""
    table = value.quantization or QuantizationParameters()
    table.min, table.max = (np.array([number], np.float32) for number in reach)
    value.quantization = table


def vectors(table: QuantizationParameters) -> dict[str, Array | None]:
    """Name the vectors of a table as the schema does: what dumps and recipes show of it."""
    return {
        "min": table.min,
        "max": table.max,
        "scale": table.scale,
        "zero_point": table.zero_point,
    }


def is_affine(value: Value) -> bool:
    """Return whether a tensor has scales: TFLite has plain integers of 16 bits beside quantized
    ones.
    """
    return len(stored_parameters(value)[0]) > 0


def affine_of(value: Value) -> Affine | None:
    """Return the quantization of a tensor's integers, None where they are plain ones or floats."""
    return None if integer_range(value.dtype) is None else Affine.given(value)


def per_tensor(value: Value, name: str) -> tuple[np.float32, int]:
    """Read the one scale and the zero point of a tensor. Raises LucioleError where it has
    several.
    """
    affine = Affine.of_tensor(value, name)
    return affine.scale[0], int(affine.zero_point[0])


def zero_code(value: Value) -> int:
    """Find the code that stands for 0 in a tensor: its zero point where it is quantized, else 0.

    Raises LucioleError for several scales, and for a zero point that the element type does not
    hold.
    """
    if value.dtype not in ACTIVATIONS or not is_affine(value):
        return 0
    _, point = per_tensor(value, f"tensor {value.name!r}")
    limits = integer_range(value.dtype)
    if limits is not None and not limits[0] <= point <= limits[1]:
        raise LucioleError(f"tensor {value.name!r} has zero point {point}, no {value.dtype.name}")
    return point


def rounded(x: Array | np.floating) -> Array:
    """Round to the nearest integers, halves away from zero, in the floating-point type of x."""
    nearest = np.asarray(np.abs(x) + x.dtype.type(0.5))
    np.floor(nearest, out=nearest)
    np.copysign(nearest, x, out=nearest)
    return nearest


def faults(value: Value, name: str, *, only_read: bool = False) -> Iterator[str]:
    """List, in a sentence each, the faults of a value's scales and zero points; ``name`` is its
    name in them. Where codes are ``only_read``, a scale may be 0: all its numbers are.
    """
    scales, points = stored_parameters(value)
    if value.quantization is None or not len(scales):
        yield f"{name} has no scale; one, or one per channel, is needed"
        return
    if not (np.isfinite(scales) & ((scales > 0) | (only_read & (scales == 0)))).all():
        yield f"{name} has scales {min(scales)} to {max(scales)}; they must be positive and finite"
    if len(points) not in (0, 1, len(scales)):
        yield f"{name} has {len(points)} zero points, {len(scales)} scales; one each is needed"
    if len(scales) > 1:
        axis = _axis(value, value.quantization)
        yield from _channel_faults(value.shape, axis, len(scales), name)


def _axis(value: Value, table: QuantizationParameters) -> int:
    """Find the axis of a tensor's scales: a vector's is its only one, whatever the file says.
    Biases of TFLite Micro's person detection have those of the filter's axis 3.
    """
    return 0 if len(value.dims) == 1 else table.quantized_dimension


def _channel_faults(shape: Shape, axis: int, count: int, name: str) -> Iterator[str]:
    if not 0 <= axis < len(shape):
        yield f"{name} has its scales along axis {axis}; it has {len(shape)} axes"
    elif shape[axis] not in (None, count):
        fits = f"1 or {shape[axis]} fit"
        yield f"{name} {shape_text(shape)} has {count} scales along axis {axis}; {fits}"


def misfits(value: Value) -> Iterator[str]:
    """List, in a sentence each, numbers of scales and zero points in a file that do not fit each
    other or the tensor.
    """
    scales, points = stored_parameters(value)
    if value.quantization is None or not len(scales):
        return
    if len(points) not in (0, len(scales)):
        yield f"{len(scales)} scales but {len(points)} zero points"
    axis = _axis(value, value.quantization)
    if len(scales) > 1 and not 0 <= axis < len(value.dims):
        yield f"{len(scales)} scales for axis {axis}, the tensor has {len(value.dims)} axes"
    elif len(scales) > 1 and value.dims[axis] != len(scales):
        yield f"{len(scales)} scales for axis {axis}, which has {value.dims[axis]} elements"


def absent_axis(value: Value) -> Iterator[str]:
    """Report scales of a vector for an axis that it does not have."""
    table, (scales, _) = value.quantization, stored_parameters(value)
    if table is not None and len(scales) > 1 and _axis(value, table) != table.quantized_dimension:
        reason = f"{len(scales)} scales are given for axis {table.quantized_dimension}"
        yield f"{reason}, of a vector: they are taken for its only axis (LiteRT refuses them)"


def impossible_scales(value: Value) -> Iterator[str]:
    """Report scales of an integer tensor that no kernel takes."""
    scales, _ = stored_parameters(value)
    wrong = scales[~(np.isfinite(scales) & (scales >= 0))]
    if integer_range(value.dtype) is not None and len(wrong):
        yield f"a scale is {wrong[0]}, scales are positive and finite"


def zero_scales(value: Value) -> Iterator[str]:
    """Report scales of an integer tensor that are 0, which stops only operators that divide by
    them.
    """
    scales, _ = stored_parameters(value)
    if integer_range(value.dtype) is not None and (scales == 0).any():
        yield "a scale is 0: all numbers of that scale are 0, and none becomes a code"


_HALF = 1 << 31
"""Runtimes have 32 bits for a zero point."""


def absurd_points(value: Value) -> Iterator[str]:
    """Report a zero point of an integer tensor that no runtime holds."""
    scales, points = stored_parameters(value)
    absurd = points[(points < -_HALF) | (points >= _HALF)]
    if integer_range(value.dtype) is not None and len(scales) and len(absurd):
        yield f"zero point {absurd[0]} has more than the 32 bits that runtimes have for it"


def outside_points(value: Value) -> Iterator[str]:
    """Report a zero point of an integer tensor that its element type does not hold, where runtimes
    do.
    """
    limits, (scales, points) = integer_range(value.dtype), stored_parameters(value)
    if limits is None or not len(scales) or any(absurd_points(value)):
        return
    outside = points[(points < limits[0]) | (points > limits[1])]
    if len(outside):
        holds = f"which holds {limits[0]} to {limits[1]}"
        yield f"zero point {outside[0]} is not in {value.dtype.name}, {holds}"
