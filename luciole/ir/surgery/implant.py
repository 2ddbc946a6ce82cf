"""Put scales, zero points, values and ranges that another tool found into a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from luciole.ir import quantization
from luciole.ir.dtypes import Array, array_type, limits_of
from luciole.ir.errors import GraphError
from luciole.ir.findings import refusal
from luciole.ir.graph import Graph, Model
from luciole.ir.names import main_tensor
from luciole.ir.op import Op
from luciole.ir.passes.fuse_quantization import raise_version
from luciole.ir.quant import Like
from luciole.ir.quantization import Affine, affine_of, note_range, noted_range
from luciole.ir.value import Value, shape_text
from luciole.ir.verify import verify
from luciole.schema.enums import TensorType

_APART = 0.01
"""How far a bias's scale may be from that of the products, as a share: other tools round it."""


@dataclass(frozen=True, eq=False)
class Implant:
    """What a tensor is to have: how integers stand for its numbers, and a constant's integers, None
    where the float ones are rounded.
    """

    affine: Affine
    values: Array | None = None


def implant(model: Model, implants: Mapping[str, Implant]) -> Model:
    """Copy a model with other types, scales, zero points and values for tensors of the main graph,
    by name. Results that operators give as they read them (RESHAPE, TRANSPOSE, MAX_POOL_2D) follow
    their operands, and float biases the scales of what they are added to.

    Raises GraphError where something does not fit a tensor, and where what comes out is no model:
    an operator then has integers and floats that do not go together; LucioleError for a tensor of
    no such name.
    """
    copy = model.clone()
    for name, implanted in implants.items():
        _put(main_tensor(copy.graph, name), implanted)
    for op in copy.graph.ops:
        _forward(op)
        _round_bias(op)
        raise_version(op)
    faults = chain(_mixed(copy.graph), _wrong_biases(copy.graph))
    reason = refusal(verify(copy)) or next(faults, None)
    if reason is not None:
        raise GraphError(f"what is put in does not make a network of integers: {reason}")
    return copy


def _put(value: Value, implanted: Implant) -> None:
    affine = implanted.affine
    if value.dtype not in (TensorType.FLOAT32, affine.dtype):
        raise GraphError(
            f"tensor {value.name!r} is {value.dtype.name}: FLOAT32 or {affine.dtype.name} is needed"
        )
    if value.sparsity is not None:
        raise GraphError(f"tensor {value.name!r} is sparse: it takes no other values")
    if value.is_constant:
        value.make_constant(_codes(value, implanted), affine.dtype)
    elif implanted.values is not None:
        raise GraphError(f"tensor {value.name!r} is no constant: it takes no values")
    _, points = affine.parameters
    _check_held(value, "zero points", points, affine.dtype)
    value.dtype, value.quantization = affine.dtype, affine.table()
    for fault in quantization.faults(value, f"tensor {value.name!r}", only_read=value.is_constant):
        raise GraphError(fault)


def _codes(value: Value, implanted: Implant) -> Array:
    """Take the integers that there are, or round the constant."""
    affine, codes = implanted.affine, implanted.values
    if codes is None:
        codes = value.contents
        return codes if value.dtype == affine.dtype else _encoded(value, affine)
    if codes.shape != value.dims or codes.dtype != array_type(affine.dtype):
        raise GraphError(
            f"tensor {value.name!r} takes values of {array_type(affine.dtype)} "
            f"{shape_text(value.dims)}, found {codes.dtype} {shape_text(codes.shape)}"
        )
    _check_held(value, "values", codes, affine.dtype)
    return codes


def _check_held(value: Value, noun: str, codes: Array, dtype: TensorType) -> None:
    """Raise GraphError for integers that a type does not hold."""
    low, high = limits_of(dtype)
    if codes.size and not low <= codes.min() <= codes.max() <= high:
        raise GraphError(
            f"tensor {value.name!r} takes {noun} from {low} to {high}, as {dtype.name} holds them, "
            f"found {codes.min()} to {codes.max()}"
        )


def _encoded(value: Value, affine: Affine) -> Array:
    numbers = value.contents.astype(np.float64)
    if not 0 <= affine.axis < max(numbers.ndim, 1):
        raise GraphError(
            f"tensor {value.name!r} {shape_text(value.dims)} has no axis {affine.axis} for scales"
        )
    return affine.encode(numbers)


def _forward(op: Op) -> None:
    """Give results that nothing was put into what is known of the operand that they repeat."""
    if op.quant is None or not isinstance(op.quant.result, Like):
        return
    operands = op.given_operands()
    read = [operands[name] for name in op.quant.result.operands if name in operands]
    known = affine_of(read[0]) if read else None
    for value in op.results if known is not None else ():
        if value.dtype == TensorType.FLOAT32 and known is not None:
            value.dtype, value.quantization = known.dtype, known.table()


class _Terms(NamedTuple):
    """The operands of a layer with a bias."""

    input: Value
    weight: Value
    bias: Value


def _terms(op: Op) -> _Terms | None:
    """Find a layer's operands, None for other operators and for a layer without a bias."""
    facts = op.quant
    if facts is None or facts.bias is None or facts.weight is None:
        return None
    operands = op.given_operands()
    if not {facts.input, facts.weight, facts.bias} <= operands.keys():
        return None
    return _Terms(operands[facts.input], operands[facts.weight], operands[facts.bias])


def _product(terms: _Terms) -> Array | None:
    """Multiply the scales of a layer's input and weights, None where one of them has none."""
    one, other = affine_of(terms.input), affine_of(terms.weight)
    return None if one is None or other is None else one.scale.astype(np.float64) * other.scale


def _round_bias(op: Op) -> None:
    """Give a float bias the scales of the products that it is added to."""
    terms = _terms(op)
    scale = None if terms is None else _product(terms)
    if terms is None or scale is None or not terms.bias.is_constant:
        return
    if terms.bias.dtype != TensorType.FLOAT32:
        return
    wide = terms.input.dtype == TensorType.INT16
    dtype = TensorType.INT64 if wide else TensorType.INT32
    _put(terms.bias, Implant(Affine.channels(scale, np.zeros(scale.shape), 0, dtype)))


def _mixed(graph: Graph) -> Iterator[str]:
    """List the layers of which some tensors are integers and others floats."""
    for op in graph.ops:
        if op.quant is None or op.quant.weight is None:
            continue
        values = [v for v in (*op.given_operands().values(), *op.results) if _counts(v)]
        floats = [v for v in values if v.dtype == TensorType.FLOAT32]
        read = op.given_operands().get(op.quant.input)
        if floats and read is not None and read.dtype != TensorType.FLOAT32:
            yield f"{op}: {floats[0].name!r} is FLOAT32, its input is {read.dtype.name}"


def _wrong_biases(graph: Graph) -> Iterator[str]:
    """List the layers whose biases have other scales than the products that they are added to."""
    for op in graph.ops:
        terms = _terms(op)
        if terms is None or affine_of(terms.bias) is None:
            continue
        product, own = _product(terms), affine_of(terms.bias)
        if product is not None and own is not None and not _alike(own.scale, product):
            yield (
                f"{op}: the bias has scale {own.scale[0]:.6g}, input and weights have "
                f"{product[0]:.6g} together"
            )


def _alike(scales: Array, others: Array) -> bool:
    fit = scales.size in (1, others.size) or others.size == 1
    return fit and bool(np.allclose(scales, others, rtol=_APART, atol=0))


def _counts(value: Value) -> bool:
    return value.dtype == TensorType.FLOAT32 or affine_of(value) is not None


def set_ranges(model: Model, ranges: Mapping[str, tuple[float, float]]) -> Model:
    """Copy a model with the least and the largest number that calibration chose for tensors, by
    name, written beside their scales as ONE's record-minmax does. Raises LucioleError for a tensor
    of no such name.
    """
    copy = model.clone()
    for name, reach in ranges.items():
        note_range(main_tensor(copy.graph, name), reach)
    return copy


def ranges_in(graph: Graph) -> dict[str, tuple[float, float]]:
    """Read the least and the largest number of the tensors that have both in the file."""
    noted = ((value.name, noted_range(value)) for value in graph.values if not value.is_constant)
    return {name: reach for name, reach in noted if reach is not None}
