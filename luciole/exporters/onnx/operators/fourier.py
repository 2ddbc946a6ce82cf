"""Fourier transforms, and the parts of their complex numbers, which are pairs in ONNX."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building, ints_of
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import TensorType
from luciole.ir.ops.complex_parts import ComplexAbs, ComplexPart, Imag, Real
from luciole.ir.ops.rfft2d import Rfft2d
from luciole.ir.rewriting.patterns import made_by


@rule(Rfft2d)
def rfft2d(k: Building, op: Rfft2d) -> Term:
    """Transform rows of real numbers, then columns of pairs. Only operators that ask for a part
    may read the result.
    """
    readers = [use.op for use in op.output.users]
    if op.output.is_output or not all(isinstance(reader, ComplexPart) for reader in readers):
        only = "which REAL, IMAG and COMPLEX_ABS read"
        raise RefusedError(f"its complex numbers are pairs in ONNX, {only}")
    rank = len(op.input.shape)
    rows, columns = ints_of(op.fft_length, "fft_length")
    x = k.add("Unsqueeze", k.of(op.input), k.ints(0, rank + 1))
    x = _transformed(k, x, columns, rank, onesided=1)
    x = _transformed(k, x, rows, rank - 1, onesided=0)
    return k.add("Squeeze", x, k.ints(0))


def _transformed(k: Building, x: Term, length: int, axis: int, onesided: int) -> Term:
    """Append a transform, whose axis is an operand since operator set 20."""
    count = k.number(length, TensorType.INT64)
    if k.opset < 20:
        return k.add("DFT", x, count, axis=axis, onesided=onesided)
    return k.add("DFT", x, count, k.number(axis, TensorType.INT64), onesided=onesided)


@rule(Real, Imag, ComplexAbs)
def part(k: Building, op: ComplexPart) -> Term:
    if made_by(op.x, Rfft2d) is None:
        raise RefusedError("its complex numbers come from no RFFT2D")
    if isinstance(op, ComplexAbs):
        return k.add("ReduceL2", k.of(op.x), k.ints(-1), keepdims=0)
    place = k.number(int(isinstance(op, Imag)), TensorType.INT64)
    return k.add("Gather", k.of(op.x), place, axis=-1)
