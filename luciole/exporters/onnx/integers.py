"""Networks of integers as floats between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.elements import FOUR_BITS, SINCE_FOUR_BITS, onnx_type
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rules
from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.blockwise import Blockwise, blocks_of
from luciole.ir.dtypes import array_type
from luciole.ir.errors import UnsupportedError
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.passes.split_quantization import split_quantization
from luciole.ir.quantization import Affine, affine_of, is_affine

_WIDE = (TensorType.INT16, TensorType.UINT16, *FOUR_BITS)
"""Element types that ONNX quantizes to since the operator set of 4 bits."""


def needs_four_bits(value: Value) -> bool:
    """Return whether a tensor's integers need the operator set of 4 bits."""
    if value.dtype in FOUR_BITS or blocks_of(value) is not None:
        return True
    return value.dtype in _WIDE and value.quantization is not None


def spell_out(graph: Graph, stays: Callable[[Op], bool]) -> None:
    """Make operators on integers compute with floats between QUANTIZE and DEQUANTIZE, except those
    for which ``stays`` is true. Biases stay integers.
    """
    kept = {op for op in graph.ops if stays(op)}
    for op in list(graph.ops):
        _refuse_odd(op)
        _read_blocks(graph, op)
        if op not in kept:
            _keep_bias(graph, op)
    split_quantization(graph, lambda op: type(op) in rules(), kept)


def _refuse_odd(op: Op) -> None:
    """Refuse an operator whose kernel computes otherwise than the file's scales say. Raises
    UnsupportedError.
    """
    fixed = None if op.quant is None else op.quant.fixed(op.results[0].dtype)
    stored = affine_of(op.results[0]) if fixed is not None else None
    if fixed and stored and not stored.same_numbers(Affine.single(*fixed, stored.dtype)):
        why = "its result has another scale than the operator's range calls for"
        raise UnsupportedError(f"ONNX: {op.kind} {op.name!r}: {why}")
    name = None if op.quant is None else op.quant.weight
    weights = op.given_operands().get(name or "")
    computed = weights is not None and not weights.is_constant and is_affine(weights)
    if computed and op.operands[0] is not None and op.operands[0].dtype == TensorType.FLOAT32:
        why = "its weights are computed integers under a float input"
        raise UnsupportedError(f"ONNX: {op.kind} {op.name!r}: {why}")


def _keep_bias(graph: Graph, op: Op) -> None:
    """Put a DEQUANTIZE behind a constant bias of integers, with the steps that kernels take."""
    bias = op.given_operands().get((op.quant.bias if op.quant else None) or "")
    wide = (TensorType.INT32, TensorType.INT64)
    if bias is None or bias.dtype not in wide or bias.data is None:
        return
    steps = steps_of_bias(op, op.operands)
    if steps is None:
        return
    codes, limits = bias.data, np.iinfo(np.int32)
    if codes.size and not (limits.min <= codes.min() and codes.max() <= limits.max):
        return
    name = graph.unique_name(f"{bias.name}/integers")
    kept = graph.add_constant(name, codes.astype(np.int32))
    points = np.zeros(len(steps))
    kept.quantization = Affine.channels(steps, points, 0, TensorType.INT32).table()
    real = Dequantize(kept)
    graph.insert_before(op, real, graph.unique_name(f"{bias.name}/real"))
    op.set_operand(op.operands.index(bias), real.output)
    if not bias.users:
        real.output.name, bias.name = bias.name, real.output.name


def _read_blocks(graph: Graph, op: Op) -> None:
    """Put a DEQUANTIZE behind weights whose blocks have scales."""
    for slot, value in enumerate(op.operands):
        if value is not None and blocks_of(value) and not isinstance(op, Dequantize):
            real = Dequantize(value)
            graph.insert_before(op, real, graph.unique_name(f"{value.name}/real"))
            op.set_operand(slot, real.output)


def dequantized(k: Building, value: Value, codes: Term, order: Sequence[int] | None = None) -> Term:
    """Make real numbers of codes, whose axes may be in another order than the value's."""
    if value.dtype == TensorType.FLOAT16:
        return k.cast(codes, TensorType.FLOAT32)
    if blocks_of(value) is not None:
        return _of_blocks(k, value, codes, order)
    affine = Affine.of(value, f"tensor {value.name!r}", only_read=True)
    return k.add("DequantizeLinear", codes, *_parameters(k, affine), **_axis(affine, order))


def quantized(k: Building, value: Value, x: Term, order: Sequence[int] | None = None) -> Term:
    """Round real numbers to codes of a value's scales, halves to even."""
    affine = Affine.of(value, f"tensor {value.name!r}")
    return k.add("QuantizeLinear", x, *_parameters(k, affine), **_axis(affine, order))


def _axis(affine: Affine, order: Sequence[int] | None) -> dict[str, object]:
    if affine.scale.size == 1:
        return {}
    return {"axis": affine.axis if order is None else list(order).index(affine.axis)}


def _parameters(k: Building, affine: Affine) -> list[Term | None]:
    """Store scale and zero point, one of each without axes. Raises RefusedError for element types
    that the operator set does not quantize to.
    """
    _check_type(k, affine.dtype)
    scale, points = affine.parameters
    if scale.size == 1:
        scale, points = scale.reshape(()), points.reshape(())
    if affine.dtype == TensorType.INT32:
        return [k.constant(scale), None]
    return [
        k.constant(scale),
        k.constant(points.astype(array_type(affine.dtype)), dtype=affine.dtype),
    ]


def _check_type(k: Building, dtype: TensorType) -> None:
    if dtype in _WIDE and k.opset < SINCE_FOUR_BITS:
        raise RefusedError(f"integers of type {dtype.name} need opset {SINCE_FOUR_BITS} (--opset)")
    onnx_type(dtype)


def _of_blocks(k: Building, value: Value, codes: Term, order: Sequence[int] | None) -> Term:
    """Make real numbers of codes whose last axis is in blocks that each have a scale."""
    blocks = Blockwise.given(value)
    assert blocks is not None, "the caller saw some"
    if k.opset < SINCE_FOUR_BITS:
        raise RefusedError(f"blocks of weights need opset {SINCE_FOUR_BITS} (--opset)")
    order = range(len(value.dims)) if order is None else order
    extents = (*value.dims[:-1], value.dims[-1] // blocks.size)
    scale, points = (
        np.ascontiguousarray(array.reshape(extents).transpose(order))
        for array in (blocks.scale, blocks.points)
    )
    zero = points.astype(array_type(value.dtype)) if points.any() else None
    zero_points = None if zero is None else k.constant(zero, dtype=value.dtype)
    options = {"axis": list(order).index(len(value.dims) - 1), "block_size": blocks.size}
    return k.add("DequantizeLinear", codes, k.constant(scale), zero_points, **options)
