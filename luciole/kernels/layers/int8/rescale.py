"""Requantize sums of integer products in layers of quantized tensors: zero points of input and
weights, and the factor, zero point and limits of results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, TensorType, Value
from luciole.ir.analysis.fixed_point import (
    activation_range,
    multiply,
    multiply_wide,
    quantize_multiplier,
    requantized,
)
from luciole.ir.quantization import Affine, per_tensor
from luciole.schema.enums import ActivationFunctionType

INT4, INT8, UINT8, INT16 = (
    TensorType.INT4,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
)
INT32, INT64 = TensorType.INT32, TensorType.INT64

BYTES = (
    *((INT8,), (INT8, INT8, INT32), (UINT8,), (UINT8, UINT8, INT32)),
    *((INT8, INT4), (INT8, INT4, INT32)),
)
"""Element types of input, weights and bias (or none) of 8 bit layers."""

SHORTS = (
    *((INT16, weights) for weights in (INT8, INT4)),
    *((INT16, weights, bias) for weights in (INT8, INT4) for bias in (INT32, INT64)),
    *((INT16,), (INT16, INT16, INT64)),
)
"""Signatures of 16 bit layers; weights of 16 bits are Samsung ONE's."""

SIGNATURES = (*BYTES, *SHORTS)
"""Signatures of all integer layers."""


@dataclass(frozen=True)
class Rescaling:
    """One layer's: real numbers are scale (q - zero point) on both sides."""

    input_zero: int
    weights_zeros: NDArray[np.int64]
    """Zero points of weights, one, or one for each output."""

    factors: NDArray[np.float64]
    """Worth of a sum in steps of the result, one, or one for each output."""

    result_zero: int
    limits: tuple[int, int]
    dtype: TensorType

    @property
    def weights_zero(self) -> int:
        """The zero point of weights that have one."""
        return int(self.weights_zeros[0])

    @classmethod
    def of(
        cls,
        input: Value,
        weights: Value,
        output: Value,
        axis: int,
        activation: ActivationFunctionType,
        *,
        single: bool = False,
        any_zero: bool = False,
    ) -> Rescaling:
        """Read from the tensors; weights may have a scale for each index of ``axis``, the outputs.

        With ``single``, the scales of input and weights are multiplied in single precision;
        with ``any_zero``, the zero point of weights of one scale may be another than 0, and those
        of UINT8 for each output.
        Raises LucioleError for tensors without scales, and where they do not fit.
        """
        scale, result_zero = per_tensor(output, "the result")
        input_scale, input_zero = per_tensor(input, "the input")
        weights_scale, points = Affine.of_weights(weights, axis, any_zero=any_zero).parameters
        if input.dtype == INT16 and (input_zero or result_zero):
            zero_points = f"{input_zero} and {result_zero}"
            raise LucioleError(
                f"16 bit input and result have zero points {zero_points}; both must be 0"
            )
        product = np.float64(input_scale) * weights_scale.astype(np.float64)
        if single:
            product = (input_scale * weights_scale).astype(np.float64)
        limits = activation_range(activation, output.dtype, scale, result_zero)
        factors = product / np.float64(scale)
        zeros = points if points.any() else points[:1]
        return cls(input_zero, zeros, factors, result_zero, limits, output.dtype)

    @classmethod
    def of_convolution(
        cls,
        input: Value,
        weights: Value,
        output: Value,
        axis: int,
        activation: ActivationFunctionType,
    ) -> Rescaling:
        """Make the rescaling of a convolution: TFLite has kept an older way for unsigned bytes."""
        old = input.dtype == UINT8
        return cls.of(input, weights, output, axis, activation, single=old, any_zero=old)

    def centred_weights(self, weights: Array, axis: int) -> NDArray[np.float64]:
        """Subtract their zero points from weights, whose outputs lie along an axis."""
        shape = [1] * weights.ndim
        shape[axis] = len(self.weights_zeros)
        return centred(weights, self.weights_zeros.reshape(shape))

    def convolved(self, sums: Array, bias: Array | None, bias_type: TensorType | None) -> Array:
        """Scale a convolution's sums [..., outputs]: those of 16 bit inputs are scaled with less
        precision unless the bias has 32 bits.
        """
        return self.wide(sums, bias) if self.is_wide(bias_type) else self.fixed(sums, bias)

    def is_wide(self, bias_type: TensorType | None) -> bool:
        """Return whether a convolution's sums are int64."""
        return self.dtype == INT16 and bias_type != INT32

    def fixed(self, sums: Array, bias: Array | None) -> Array:
        """Scale sums [..., outputs] by fixed-point factors: TFLite's convolutions. Sums and bias
        are int32, and wrap around.
        """
        total = _biased(sums, bias).astype(np.int32)
        return self._finished(multiply(total, *quantize_multiplier(self.factors)))

    def wide(self, sums: Array, bias: Array | None) -> Array:
        """Scale sums and bias of int64: TFLite's convolutions of 16 bit inputs."""
        factors = quantize_multiplier(self.factors)
        return self._finished(multiply_wide(_biased(sums, bias), *factors))

    def exact(self, sums: Array, bias: Array | None) -> Array:
        """Scale sums in double precision, halves away from zero: TFLite's FULLY_CONNECTED."""
        steps = _biased(sums, bias).astype(np.float64) * self.factors
        whole = np.trunc(steps)
        rounded = whole + np.where(np.abs(steps - whole) >= 0.5, np.copysign(1.0, steps), 0.0)
        most = np.iinfo(np.int32)
        return self._finished(np.clip(rounded, most.min, most.max).astype(np.int32))

    def _finished(self, scaled: NDArray[np.int32]) -> Array:
        return requantized(scaled, self.result_zero, self.limits, self.dtype)


def _biased(sums: Array, bias: Array | None) -> Array:
    wide: Array = sums.astype(np.int64)
    return wide if bias is None else wide + bias.reshape(-1).astype(np.int64)


def centred(x: Array, zero_point: int | NDArray[np.int64]) -> NDArray[np.float64]:
    """Subtract a zero point, or several that stretch, from integers, as float64, whose sums of
    products are exact below 2^53.
    """
    result: NDArray[np.float64] = x.astype(np.float64) - zero_point
    return result
