"""Operators on elements: arithmetic, comparisons, logic, functions of one number."""

from __future__ import annotations

import math

import numpy as np

from luciole.importers.onnx.building import Building, numpy_type
from luciole.importers.onnx.element_types import element_type
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.shape import broadcast, counts_extents
from luciole.importers.onnx.rules import Rule, rule
from luciole.ir import OPS, Op, TensorType, Value
from luciole.ir.dtypes import PACKED
from luciole.ir.ops import bitcast as bits
from luciole.ir.ops import comparisons, logical, select, stablehlo_elementwise
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.add_n import AddN
from luciole.schema.onnx_dialect import NODES

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64)


def _same(cls: type[Op]) -> Rule:
    """Make the rule of an operator that circle has, on the same operands."""

    def convert(k: Building, node: Node) -> Value:
        return k.add(cls.from_operands(stretched(k, node), {}))

    return convert


def stretched(k: Building, node: Node) -> list[Value | None]:
    """List operands: before version 7, the second one's axes begin where ``axis`` says."""
    operands = list(node.operands)
    if node.opset >= 7 or not node.has("axis") or len(operands) != 2:
        return operands
    x, y = node[0], node[1]
    behind = len(x.shape) - len(y.shape) - k.axis(node.integer("axis"), x)
    return [x, k.reshape(y, (*y.shape, *[1] * behind)) if behind > 0 else y]


for _code, _name in NODES.items():
    if OPS[_code] is not binary.Div:
        rule(_name)(_same(OPS[_code]))


@rule("Div")
def div(k: Building, node: Node) -> Value:
    """Divide, integers toward zero: those that extents make as INT32, since LiteRT has no DIV of
    INT64.
    """
    x, y = stretched(k, node)
    if x is None or y is None:
        raise RefusedError("an operand is missing")
    is_fixed = x.is_constant and y.is_constant
    if x.dtype == TensorType.INT64 and not is_fixed and counts_extents(x) and counts_extents(y):
        narrow = binary.Div(k.cast(x, TensorType.INT32), k.cast(y, TensorType.INT32))
        return k.cast(k.add(narrow), TensorType.INT64)
    return k.add(binary.Div(x, y))


@rule("Identity")
def identity(k: Building, node: Node) -> Value:
    """Return the operand."""
    return node[0]


@rule("Dropout")
def dropout(k: Building, node: Node) -> list[Value | None]:
    """Return the operand: models that are run drop nothing. The mask is true everywhere."""
    training = node.get(2)
    if node.opset < 7 and not node.flag("is_test"):
        raise RefusedError("it is to be trained")
    if training is not None and bool(k.known(training)):
        raise RefusedError("it is to be trained")
    if not node.has_result(1):
        return [node[0]]
    dtype = np.bool_ if node.opset >= 10 else numpy_type(node[0].dtype)
    return [node[0], k.held(k.filled(k.dims(node[0]), 1, dtype))]


@rule("Pow")
def power(k: Building, node: Node) -> Value:
    """Raise to a power: the result is of the base's type."""
    x, y = node[0], node[1]
    if y.data is not None and y.data.size == 1 and float(y.data.reshape(-1)[0]) == 2.0:
        return k.add(unary.Square(x)) if x.dtype in FLOATS else k.add(binary.Mul(x, x))
    if x.dtype == y.dtype:
        return k.add(binary.Pow(x, y))
    wide = TensorType.FLOAT32 if y.dtype in FLOATS or x.dtype in FLOATS else TensorType.INT64
    return k.cast(k.add(binary.Pow(k.cast(x, wide), k.cast(y, wide))), x.dtype)


@rule("Max", "Min", "Sum", "Mean")
def several(k: Building, node: Node) -> Value:
    """Join any number of operands, two by two."""
    cls = {"Max": binary.Maximum, "Min": binary.Minimum}.get(node.kind, binary.Add)
    operands = [node[slot] for slot in range(len(node.operands))]
    if node.kind == "Sum" and k.nodes.is_ours and len(operands) > 2:
        return k.add(AddN(tuple(operands)))
    joined = k.joined(cls, operands)
    if node.kind != "Mean":
        return joined
    return k.add(binary.Mul(joined, k.like(joined, 1 / len(node.operands))))


@rule("Where")
def where(k: Building, node: Node) -> Value:
    """Select; the operand that compares larger, or smaller, circle has an operator for."""
    condition, t, e = node[0], node[1], node[2]
    comparison = condition.producer.op if condition.producer is not None else None
    if isinstance(comparison, comparisons.Greater | comparisons.Less) and t.dtype in FLOATS:
        is_larger = isinstance(comparison, comparisons.Greater)
        if comparison.operands == (t, e):
            return k.add((binary.Maximum if is_larger else binary.Minimum)(t, e))
    return k.add(select.SelectV2(condition, t, e))


@rule("Reciprocal")
def reciprocal(k: Building, node: Node) -> Value:
    """Divide 1 by it; by a square root, which circle has an operator for."""
    producer = node[0].producer
    if producer is not None and isinstance(producer.op, unary.Sqrt):
        return k.add(unary.Rsqrt(producer.op.x))
    return k.add(binary.Div(k.like(node[0], 1), node[0]))


@rule("Mod")
def mod(k: Building, node: Node) -> Value:
    """Compute the rest: of the divisor's sign, with ``fmod`` of the dividend's."""
    x, y = node[0], node[1]
    if not node.flag("fmod"):
        return k.add(binary.FloorMod(x, y))
    rest = k.add(binary.FloorMod(k.add(unary.Abs(x)), k.add(unary.Abs(y))))
    return k.add(binary.Mul(rest, k.add(unary.Sign(x))))


@rule("Xor")
def exclusive_or(k: Building, node: Node) -> Value:
    """Return whether one of two holds alone."""
    return k.add(comparisons.NotEqual(node[0], node[1]))


@rule("BitwiseAnd")
def bitwise_and(k: Building, node: Node) -> Value:
    """Combine bits."""
    return _both(k, node[0], node[1])


@rule("BitwiseNot")
def bitwise_not(k: Building, node: Node) -> Value:
    """Turn bits round."""
    return k.add(binary.BitwiseXor(node[0], _all_ones(k, node[0])))


@rule("BitwiseOr")
def bitwise_or(k: Building, node: Node) -> Value:
    """Combine bits: not (not a and not b)."""
    turned = [k.add(binary.BitwiseXor(v, _all_ones(k, v))) for v in (node[0], node[1])]
    both = _both(k, *turned)
    return k.add(binary.BitwiseXor(both, _all_ones(k, both)))


def _both(k: Building, x: Value, y: Value) -> Value:
    """Combine bits; the operator stretches nothing."""
    if x.shape != y.shape:
        shape = np.broadcast_shapes(k.dims(x), k.dims(y))
        x, y = broadcast(k, x, shape), broadcast(k, y, shape)
    return k.add(stablehlo_elementwise.StablehloAnd(x, y))


def _all_ones(k: Building, value: Value) -> Value:
    return k.like(value, np.array(-1).astype(numpy_type(value.dtype)))


@rule("BitShift")
def bit_shift(k: Building, node: Node) -> Value:
    """Shift bits; what is shifted out is lost."""
    x, y = node[0], node[1]
    if node.text("direction") == "RIGHT" and x.dtype != TensorType.UINT64:
        signed = numpy_type(x.dtype).kind == "i"
        return k.add(binary.RightShift(x, _far(k, y) if signed else y))
    if x.dtype == TensorType.UINT64:
        raise RefusedError("no bits of UINT64 are shifted")
    factor = k.add(binary.Pow(k.like(k.cast(x, TensorType.INT64), 2), k.cast(y, TensorType.INT64)))
    shifted = k.add(binary.Mul(k.cast(x, TensorType.INT64), factor))
    return k.cast(shifted, x.dtype)


def _far(k: Building, y: Value) -> Value:
    """Bring shifts of signed numbers to one that fills with the sign: negative ones are far,
    too.
    """
    most = k.like(y, 8 * numpy_type(y.dtype).itemsize - 1)
    negative = k.add(comparisons.Less(y, k.like(y, 0)))
    return k.add(select.SelectV2(negative, most, k.add(binary.Minimum(y, most))))


@rule("BitCast")
def bit_cast(k: Building, node: Node) -> Value:
    """Take the bits for numbers of another type of as many bits."""
    to = element_type(node.integer("to"))
    if numpy_type(to).itemsize != numpy_type(node[0].dtype).itemsize:
        raise RefusedError("the types have other numbers of bits")
    result = k.graph.add_value(Value(k.name(f"{k.prefix}/bits"), to, node[0].shape))
    k.graph.append(bits.Bitcast(node[0]), results=[result])
    return result


@rule("Cast", "CastLike")
def cast(k: Building, node: Node) -> Value:
    """Convert elements."""
    to = node[1].dtype if node.kind == "CastLike" else element_type(node.integer("to"))
    x = node[0]
    if to in PACKED or (node.kind == "CastLike" and node[1] in k.nodes.widened):
        raise RefusedError("it rounds to a type that is not computed")
    if x.dtype in PACKED and x.data is not None:
        x = k.constant(x.data)
    if TensorType.STRING in (x.dtype, to):
        raise RefusedError("no texts are converted")
    if to == TensorType.BOOL and x.dtype in FLOATS:
        return k.add(comparisons.NotEqual(x, k.like(x, 0)))
    return k.cast(x, to)


@rule("IsNaN")
def is_nan(k: Building, node: Node) -> Value:
    """Return where elements are no numbers: they differ from themselves."""
    return k.add(comparisons.NotEqual(node[0], node[0]))


@rule("IsInf")
def is_inf(k: Building, node: Node) -> Value:
    """Return where elements are infinite, of one sign or both."""
    tests = [
        k.add(comparisons.Equal(node[0], k.like(node[0], sign * np.inf)))
        for name, sign in (("detect_positive", 1), ("detect_negative", -1))
        if node.flag(name, True)
    ]
    if not tests:
        raise RefusedError("it looks for infinities of no sign")
    return k.joined(logical.LogicalOr, tests)


@rule("Erf")
def erf(k: Building, node: Node) -> Value:
    """Compute the error function: erf(x) = 2 Phi(x sqrt 2) - 1, and circle's GELU is y Phi(y).

    Below |x| = 1e-3 GELU says too little of Phi: there it is 2 x / sqrt(pi) (1 - x^2 / 3).
    """
    from luciole.ir.ops.gelu import Gelu

    x = k.cast(node[0], TensorType.FLOAT32)
    small = k.add(comparisons.Less(k.add(unary.Abs(x)), k.like(x, 1e-3)))
    scaled = k.add(binary.Mul(x, k.like(x, math.sqrt(2))))
    divisor = k.add(select.SelectV2(small, k.like(x, 1), scaled))  # there is no 0 / 0 on the way
    share = k.add(binary.Div(k.add(Gelu(scaled, approximate=False)), divisor))
    far = k.add(binary.Sub(k.add(binary.Mul(share, k.like(x, 2))), k.like(x, 1)))
    cube = k.add(binary.Mul(k.add(binary.Mul(x, x)), k.like(x, -1 / 3)))
    slope = k.add(binary.Mul(x, k.like(x, 2 / math.sqrt(math.pi))))
    near = k.add(binary.Mul(k.add(binary.Add(cube, k.like(x, 1))), slope))
    return k.cast(k.add(select.SelectV2(small, near, far)), node[0].dtype)


@rule("Sinh", "Cosh")
def hyperbolic(k: Building, node: Node) -> Value:
    """Compute (e^x -+ e^-x) / 2."""
    up, down = k.add(unary.Exp(node[0])), k.add(unary.Exp(k.add(unary.Neg(node[0]))))
    cls = binary.Sub if node.kind == "Sinh" else binary.Add
    return k.add(binary.Mul(k.add(cls(up, down)), k.like(node[0], 0.5)))


@rule("Tan")
def tan(k: Building, node: Node) -> Value:
    """Divide the sine by the cosine."""
    return k.add(binary.Div(k.add(unary.Sin(node[0])), k.add(unary.Cos(node[0]))))


@rule("Atan")
def atan(k: Building, node: Node) -> Value:
    """Compute the angle of (1, x)."""
    return k.add(binary.Atan2(node[0], k.like(node[0], 1)))


@rule("Asin", "Acos")
def inverse_circular(k: Building, node: Node) -> Value:
    """Compute the angle of a point of the unit circle by one of its coordinates."""
    x, one = node[0], k.like(node[0], 1)
    below, above = k.add(binary.Sub(one, x)), k.add(binary.Add(one, x))
    other = k.add(unary.Sqrt(k.add(binary.Mul(below, above))))
    both = (x, other) if node.kind == "Asin" else (other, x)
    return k.add(binary.Atan2(*both))


@rule("Asinh", "Acosh")
def inverse_hyperbolic(k: Building, node: Node) -> Value:
    """Compute log(x + sqrt(x^2 +- 1)), of Asinh with x's sign put aside."""
    x = node[0]
    size = k.add(unary.Abs(x)) if node.kind == "Asinh" else x
    one = k.like(x, 1 if node.kind == "Asinh" else -1)
    root = k.add(unary.Sqrt(k.add(binary.Add(k.add(binary.Mul(size, size)), one))))
    logarithm = k.add(unary.Log(k.add(binary.Add(size, root))))
    return logarithm if node.kind == "Acosh" else k.add(binary.Mul(logarithm, k.add(unary.Sign(x))))


@rule("Atanh")
def atanh(k: Building, node: Node) -> Value:
    """Compute log((1 + x) / (1 - x)) / 2."""
    one = k.like(node[0], 1)
    ratio = binary.Div(k.add(binary.Add(one, node[0])), k.add(binary.Sub(one, node[0])))
    return k.add(binary.Mul(k.add(unary.Log(k.add(ratio))), k.like(node[0], 0.5)))
