"""Kernels that make real numbers out of complex ones."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.complex_parts import PARTS, ComplexAbs, Imag, Real
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import copy


@reference(Real, *PARTS)
def real(op: Real, x: Array) -> Array:
    """Copy the real parts."""
    return x.real.copy()


@reference(Imag, *PARTS)
def imag(op: Imag, x: Array) -> Array:
    """Copy the imaginary parts."""
    return x.imag.copy()


@reference(ComplexAbs, *PARTS)
def complex_abs(op: ComplexAbs, x: Array) -> Array:
    """Compute magnitudes without overflow in between."""
    return np.abs(x)


@native(Real, *PARTS)
def build_real(op: Real, context: Context) -> NativeStep | None:
    """Copy every other number, from the first."""
    x = context.operands[0]
    return None if x is None else copy.step([(context.results[0], x.real)])


@native(Imag, *PARTS)
def build_imag(op: Imag, context: Context) -> NativeStep | None:
    """Copy every other number, from the second."""
    x = context.operands[0]
    return None if x is None else copy.step([(context.results[0], x.imag)])
