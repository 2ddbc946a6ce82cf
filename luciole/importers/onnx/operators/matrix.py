"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.importers.onnx.building import Building, is_fixed
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import reduce
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.fully_connected import FullyConnected

_WHOLE = (TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64)


@rule("Gemm")
def gemm(k: Building, node: Node) -> Value:
    """Compute alpha A B + beta C, of A and B either turned round."""
    x, y, c = node[0], node[1], node.get(2)
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise RefusedError("it multiplies what are no matrices")
    turn_x, turn_y = node.flag("transA"), node.flag("transB")
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if c is not None and beta != 1.0:
        c = k.add(binary.Mul(c, k.like(c, beta)))
    layer = alpha == 1.0 and not turn_x and x.dtype == TensorType.FLOAT32
    fixed = is_fixed(y) and (c is None or c.is_constant)
    plain = turn_y and (c is None or c.shape == y.shape[:1])
    if layer and (fixed or (plain and None not in y.shape)):
        product, used = _layer(k, x, y if turn_y else k.transpose(y, (1, 0)), c)
        return product if used or c is None else k.add(binary.Add(product, c))
    x, y = (k.transpose(v, (1, 0)) if turn else v for v, turn in ((x, turn_x), (y, turn_y)))
    product = matmul(k, x, y)
    if alpha != 1.0:
        product = k.add(binary.Mul(product, k.like(product, alpha)))
    return product if c is None else k.add(binary.Add(product, c))


def _layer(k: Building, x: Value, weights: Value, bias: Value | None) -> tuple[Value, bool]:
    """Add a dense layer; and whether it takes the bias."""
    outputs = k.dims(weights)[0]
    fits = bias is not None and bias.shape in ((outputs,), (1, outputs))
    flat = k.reshape(bias, (outputs,)) if fits and bias is not None else None
    keep = len(x.shape) != 2
    return k.add(FullyConnected(x, weights, flat, keep_num_dims=keep)), fits


@rule("MatMul")
def mat_mul(k: Building, node: Node) -> Value:
    """Multiply matrices, or stacks of them."""
    return matmul(k, node[0], node[1])


def matmul(k: Building, x: Value, y: Value) -> Value:
    """Multiply as NumPy does: a vector is a row on the left and a column on the right."""
    if not x.shape or not y.shape:
        raise RefusedError("it multiplies single numbers")
    left, right = len(x.shape) == 1, len(y.shape) == 1
    x = k.reshape(x, (1, *x.shape)) if left else x
    y = k.reshape(y, (*y.shape, 1)) if right else y
    if is_fixed(y) and len(y.shape) == 2 and x.dtype == y.dtype == TensorType.FLOAT32:
        product, _ = _layer(k, x, k.transpose(y, (1, 0)), None)
    else:
        product = _stacks(k, x, y)
    shape = list(product.shape)
    if right:
        del shape[-1]
    if left:
        del shape[-1 if right else -2]
    return k.reshape(product, shape)


def _stacks(k: Building, x: Value, y: Value) -> Value:
    rank = max(len(x.shape), len(y.shape))
    x, y = (k.reshape(v, (1,) * (rank - len(v.shape)) + tuple(v.shape)) for v in (x, y))
    if x.dtype in _WHOLE or y.dtype in _WHOLE:
        return _of_integers(k, x, y)
    dtype = x.dtype
    x, y = (k.cast(v, TensorType.FLOAT32) for v in (x, y))
    return k.cast(k.add(BatchMatMul(x, y)), dtype)


def _of_integers(k: Building, x: Value, y: Value) -> Value:
    """Multiply integers exactly: floats do not hold their sums."""
    *head, rows, inner = k.dims(x)
    *tail, _, columns = k.dims(y)
    if rows * inner * columns > 1 << 20:
        raise RefusedError("it multiplies large matrices of integers")
    left = k.reshape(x, (*head, rows, inner, 1))
    right = k.reshape(y, (*tail, 1, inner, columns))
    products = k.add(binary.Mul(left, right))
    axis = k.constant(np.array([len(products.shape) - 2], np.int32))
    return k.add(reduce.Sum(products, axis, keep_dims=False))


@rule("Einsum")
def einsum(k: Building, node: Node) -> Value:
    """Sum products over indices: operands are joined two by two, as products of matrices."""
    text = node.text("equation").replace(" ", "")
    operands = [node[slot] for slot in range(len(node.operands))]
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RefusedError(f"{text!r} is not of {len(operands)} operands")
    terms = [_written(t, len(v.shape), text) for t, v in zip(terms, operands, strict=True)]
    most = max((t for t in ("".join(c for c in term if c.isdigit()) for term in terms)), key=len)
    if arrow:
        result = right.replace("...", most)
    else:
        letters = sorted("".join(terms).replace(" ", ""))
        result = most + "".join(c for c in letters if letters.count(c) == 1 and not c.isdigit())
    return _einsum(k, list(zip(terms, operands, strict=True)), result)


def _written(term: str, rank: int, text: str) -> str:
    """Give the axes that dots stand for digits for names."""
    letters = term.replace("...", "")
    dots = rank - len(letters)
    if dots < 0 or (dots and "..." not in term) or dots > 9:
        raise RefusedError(f"{text!r} does not fit its operands")
    if len(set(letters)) < len(letters):
        raise RefusedError(f"{text!r} takes diagonals")
    return term.replace("...", "".join(str(9 - i) for i in range(dots))[::-1])


def _einsum(k: Building, terms: list[tuple[str, Value]], result: str) -> Value:
    name, value = terms[0]
    for slot, (other, factor) in enumerate(terms[1:], 2):
        later = result + "".join(t for t, _ in terms[slot:])
        name, value = _pair(k, (name, value), (other, factor), later)
    extra = [i for i, c in enumerate(name) if c not in result]
    if extra:
        value = k.add(reduce.Sum(value, k.constant(np.array(extra, np.int32)), keep_dims=False))
        name = "".join(c for c in name if c in result)
    if sorted(name) != sorted(result):
        raise RefusedError("its result has indices that no operand has")
    return k.transpose(value, [name.index(c) for c in result])


def _pair(k: Building, x: tuple[str, Value], y: tuple[str, Value], later: str) -> tuple[str, Value]:
    """Join two operands: sum over indices that neither the result nor a later operand has."""
    both = [c for c in x[0] if c in y[0]]
    summed = [c for c in both if c not in later]
    batch = [c for c in both if c in later]
    rows = [c for c in x[0] if c not in both]
    columns = [c for c in y[0] if c not in both]
    extents = dict(zip(x[0], k.dims(x[1]), strict=True)) | dict(
        zip(y[0], k.dims(y[1]), strict=True)
    )

    def arranged(term: tuple[str, Value], parts: Sequence[Sequence[str]]) -> Value:
        order = [term[0].index(c) for part in (batch, *parts) for c in part]
        sizes = [int(np.prod([extents[c] for c in part])) for part in parts]
        return k.reshape(k.transpose(term[1], order), [*(extents[c] for c in batch), *sizes])

    left, right = arranged(x, (rows, summed)), arranged(y, (summed, columns))
    names = [*batch, *rows, *columns]
    product = _stacks(k, left, right)
    return "".join(names), k.reshape(product, [extents[c] for c in names])
