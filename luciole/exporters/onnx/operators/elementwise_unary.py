"""Operators on each element of one tensor."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import elementwise
from luciole.ir import TensorType
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.elementwise_unary import (
    Rsqrt,
    Square,
    ZerosLike,
)


@elementwise(Rsqrt)
def rsqrt(k: Building, op: Rsqrt, x: Term) -> Term:
    return k.add("Reciprocal", k.add("Sqrt", x))


@elementwise(Square)
def square(k: Building, op: Square, x: Term) -> Term:
    return k.add("Mul", x, x)


@elementwise(ZerosLike)
def zeros_like(k: Building, op: ZerosLike, x: Term) -> Term:
    """Fill the shape: 0 times an infinity would be no 0."""
    return k.add("Expand", k.number(0, op.x.dtype), k.add("Shape", x))


@elementwise(Cast)
def cast(k: Building, op: Cast, x: Term) -> Term:
    if TensorType.COMPLEX64 in (op.x.dtype, op.output.dtype):
        raise RefusedError("ONNX casts no complex numbers")
    if op.output.dtype == op.x.dtype:
        return k.add("Identity", x)
    return k.cast(x, op.output.dtype)
