"""Find the poles of operators, and poles that integers reach though kernels refuse them there."""

from __future__ import annotations

from collections.abc import Mapping

from luciole.ir.op import Op
from luciole.ir.quant import Pole
from luciole.ir.quantization import Affine, affine_of
from luciole.ir.value import Value


def poles_of(op: Op) -> list[Pole]:
    """List the poles of an operator, but for a power's whose exponents are known not to be
    negative.
    """
    values = op.given_operands()
    return [pole for pole in op.poles if not _is_never_negative(values.get(pole.exponent or ""))]


def _is_never_negative(exponent: Value | None) -> bool:
    return exponent is not None and exponent.data is not None and bool((exponent.data >= 0).all())


def refused_pole(op: Op, grids: Mapping[str, Affine] | None = None) -> Pole | None:
    """Find the first pole of an operator that its operands' integers reach and kernels refuse;
    None where they compute with each integer that there may be. ``grids`` say by name what
    integers float operands are to be, of others their own say.

    A tensor that is computed may hold each of its type's integers, whatever calibration saw: 0 is
    among them wherever the zero point is one of them.
    """
    values = op.given_operands()
    for pole in poles_of(op):
        value = values[pole.operand]
        affine = (grids or {}).get(pole.operand) or affine_of(value)
        if affine is not None and _meets(value, affine, pole):
            return pole
    return None


def _meets(value: Value, affine: Affine, pole: Pole) -> bool:
    """Return whether a tensor may hold integers whose signs are refused."""
    codes = value.data
    if codes is not None and value.dtype != affine.dtype:
        codes = affine.encode(codes)
    return not affine.signs(codes).isdisjoint(pole.refused)
