"""The cell of long short-term memory in integers: INT8 inputs, outputs and weights, INT16 inside.

Bit for bit TFLite's 8x8_16 kernel: gates have 3 integer bits before their activation and none
after it, the cell's scale is a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, UnsupportedError
from luciole.ir.analysis.fixed_point import (
    Integers,
    multiply,
    quantize_multiplier,
    rounding_divide,
)
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.quantization import per_tensor
from luciole.ir.recurrent import GATES
from luciole.kernels.fixed_point.functions import inverse_root
from luciole.kernels.fixed_point.functions_16 import BITS, ONE, logistic, saturated, tanh
from luciole.kernels.recurrent.operands import Arrays
from luciole.schema.enums import ActivationFunctionType

Numbers = NDArray[np.int64]

GATE_BITS = 3
"""Integer bits of a gate before its activation."""

NORM_BITS = 12
"""Fraction bits of a gate then, to which normalized numbers are brought."""


@dataclass(frozen=True)
class Factor:
    """A real factor as integers."""

    real: np.float64
    multiplier: Integers
    shift: Integers

    @classmethod
    def of(cls, factor: float | np.floating) -> Factor:
        """Find the nearest; TFLite computes factors in single precision."""
        real = np.float64(np.float32(factor))
        return cls(real, *quantize_multiplier(real))

    def __call__(self, x: Array, exponent: int = 0) -> Numbers:
        """Multiply x by the factor and 2^exponent."""
        return multiply(
            np.asarray(x).astype(np.int32), self.multiplier, self.shift + exponent
        ).astype(np.int64)


@dataclass(frozen=True)
class Product:
    """Weights [outputs, inputs], the zero point of their operand, biases, and the factor to the
    result.
    """

    weights: Numbers
    zero: int
    bias: Numbers
    factor: Factor

    def __call__(self, x: Array) -> Numbers:
        """Compute the product of x [batch, inputs]."""
        return self.factor((x.astype(np.int64) - self.zero) @ self.weights.T + self.bias)


@dataclass(frozen=True)
class Norm:
    """Layer normalization."""

    coefficients: Numbers
    bias: Numbers
    factor: Factor
    guard: int

    def __call__(self, x: Numbers) -> Numbers:
        """Make rows with mean 0 and variance 1, times the coefficients, plus the bias."""
        count, unit = x.shape[1], 1 << 20
        mean = _quotient(x.sum(axis=1) * 1024, count)
        variance = _quotient(np.square(x).sum(axis=1) * (unit // count) - mean * mean, unit)
        variance = np.where(variance < 1, self.guard, variance)
        multiplier, shift = (a[:, None] for a in inverse_root(variance))
        centred = (1024 * x - mean[:, None]).astype(np.int32)
        scaled = multiply(centred, multiplier, shift).astype(np.int64)
        sums = scaled * self.coefficients + self.bias
        rounded = _quotient(sums + np.where(sums > 0, 512, -512), 1024)
        return saturated(self.factor(rounded, NORM_BITS))


def _quotient(x: Array, y: int) -> Numbers:
    """Divide without the fraction, as C does."""
    return np.asarray(np.sign(x) * (np.abs(x) // y), np.int64)


@dataclass(frozen=True)
class Gate:
    """The parameters of one gate, or of the candidate for the cell ("cell gate")."""

    input: Product
    recurrent: Product
    peephole: tuple[Numbers, Factor] | None
    norm: Norm | None

    def __call__(self, x: Array, hidden: Array, cell: Numbers) -> Numbers:
        """Compute the gate [batch, cells] before its activation."""
        y = saturated(self.input(x))
        y = saturated(y + self.recurrent(hidden))
        if self.peephole is not None:
            weights, factor = self.peephole
            y = saturated(y + factor(cell * weights))
        return y if self.norm is None else self.norm(y)


class Scales:
    """The scales of one operator's tensors, by their names."""

    def __init__(self, op: LSTMLayer) -> None:
        self.values = dict(op.named_operands())
        self.intermediates = op.intermediates
        if len(self.intermediates) != 5:
            raise LucioleError(
                f"there are {len(self.intermediates)} intermediate tensors, 5 are needed for INT8"
            )

    def of(self, name: str) -> np.float32:
        """Read the scale of an operand."""
        return self.affine(name)[0]

    def affine(self, name: str) -> tuple[np.float32, int]:
        """Scale and zero point of an operand."""
        value = self.values[name]
        assert value is not None
        return per_tensor(value, name)

    def between(self, index: int) -> tuple[np.float32, int]:
        """Scale and zero point of an intermediate tensor."""
        return per_tensor(self.intermediates[index], f"intermediate tensor {index}")


def _gate(arrays: Arrays, scales: Scales, name: str, cell_bits: int) -> Gate:
    normalized = f"{name}_layer_norm_coefficients" in arrays
    unit = scales.between(GATES.index(name))[0] if normalized else np.float32(2.0**-12)
    bias = arrays[f"{name}_gate_bias"].astype(np.int64)
    of_input = _product(arrays, scales, f"input_to_{name}_weights", "input", unit)
    of_input = of_input if normalized else replace(of_input, bias=bias)
    of_state = _product(arrays, scales, f"recurrent_to_{name}_weights", "output_state", unit)
    peephole = _peephole(arrays, scales, name, unit, cell_bits)
    return Gate(of_input, of_state, peephole, _norm(arrays, scales, name, bias))


def _product(arrays: Arrays, scales: Scales, name: str, source: str, unit: np.float32) -> Product:
    weights = arrays[name].astype(np.int64)
    scale, zero = scales.affine(source)
    factor = Factor.of(scales.of(name) * scale / unit)
    return Product(weights, zero, np.zeros(len(weights), np.int64), factor)


def _peephole(
    arrays: Arrays, scales: Scales, name: str, unit: np.float32, cell_bits: int
) -> tuple[Numbers, Factor] | None:
    operand = f"cell_to_{name}_weights"
    if operand not in arrays:
        return None
    factor = 2.0**cell_bits * float(scales.of(operand)) / float(unit)
    return arrays[operand].astype(np.int64), Factor.of(factor)


def _norm(arrays: Arrays, scales: Scales, name: str, bias: Numbers) -> Norm | None:
    operand = f"{name}_layer_norm_coefficients"
    if operand not in arrays:
        return None
    scale = scales.of(operand)
    guard = max(1, int(np.float32(10000) * scale))
    return Norm(arrays[operand].astype(np.int64), bias, Factor.of(scale), guard)


class IntegerCell:
    """All gates of one layer. Operands are named as those of UNIDIRECTIONAL_SEQUENCE_LSTM."""

    def __init__(self, op: LSTMLayer, arrays: Arrays) -> None:
        _check_types(op, arrays)
        scales = Scales(op)
        cell_scale = scales.of("cell_state")
        self.cell_bits = _power_of_two(cell_scale)
        gates = {
            name: _gate(arrays, scales, name, self.cell_bits)
            for name in GATES
            if f"input_to_{name}_weights" in arrays
        }
        self.input = gates.get("input")
        self.forget, self.candidate, self.output = (gates[n] for n in GATES[1:])
        self.cell_clip = _steps(op.cell_clip, cell_scale, ONE)
        hidden, self.hidden_zero = scales.between(4)
        self.hidden_factor = Factor.of(2.0**-15 / float(hidden) * 2.0**-15)
        result, self.zero = scales.affine("output_state")
        self.projection: Product | None = None
        self.proj_clip = _steps(op.proj_clip, result, 127)
        if "projection_weights" in arrays:
            # TFLite takes the zero point with the other sign here: what is cut off differs.
            self.hidden_zero = -self.hidden_zero
            weights = arrays["projection_weights"].astype(np.int64)
            bias = arrays.get("projection_bias", np.zeros(len(weights), np.int32))
            factor = Factor.of(scales.of("projection_weights") * hidden / result)
            self.projection = Product(weights, self.hidden_zero, bias.astype(np.int64), factor)

    def step(
        self, x: Array, hidden: Array, cell: Array, other: Array | None = None
    ) -> tuple[Array, Array]:
        """Compute the next output [batch, outputs] and cell state [batch, cells]."""
        before = cell.astype(np.int64)
        forget = logistic(self.forget(x, hidden, before))
        write = ONE - forget if self.input is None else logistic(self.input(x, hidden, before))
        candidate = tanh(self.candidate(x, hidden, before), GATE_BITS)
        kept = rounding_divide(forget * before, BITS).astype(np.int64)
        new = rounding_divide(write * candidate, 2 * BITS + self.cell_bits)
        after = saturated(kept + new)
        if self.cell_clip > 0:
            after = np.clip(after, -self.cell_clip, self.cell_clip)
        read = logistic(self.output(x, hidden, after)) * tanh(after, BITS + self.cell_bits)
        shown = np.clip(self.hidden_factor(read) + self.hidden_zero, -128, 127)
        return self._projected(shown).astype(np.int8), after.astype(np.int16)

    def _projected(self, shown: Numbers) -> Numbers:
        if self.projection is None:
            return shown
        y = np.clip(self.projection(shown) + self.zero, -128, 127)
        return np.clip(y, -self.proj_clip, self.proj_clip) if self.proj_clip > 0 else y


def _steps(limit: float, scale: np.float32, most: int) -> int:
    """Return a limit in steps of a scale."""
    return int(np.minimum(np.float32(limit) / scale, most))


def _power_of_two(scale: np.float32) -> int:
    """Return the exponent of a cell's scale. Raises LucioleError where the kernel cannot use it."""
    fraction, exponent = np.frexp(scale)
    if fraction != 0.5 or not -BITS <= exponent - 1 <= -9:
        raise LucioleError(f"cell_state has scale {scale}, 2^-15 to 2^-9 is needed")
    return int(exponent) - 1


def _check_types(op: LSTMLayer, arrays: Arrays) -> None:
    """Refuse weights of other types, and activations that the kernel does not have."""
    for name, array in arrays.items():
        expected = np.int16 if name.startswith("cell_to_") else np.int8
        if name.endswith("weights") and array.dtype != expected:
            raise UnsupportedError(
                f"{name} is {array.dtype}, {expected.__name__} is needed for INT8"
            )
    if op.activation != ActivationFunctionType.TANH:
        raise UnsupportedError(f"fused activation {op.activation.name} is not TANH")
