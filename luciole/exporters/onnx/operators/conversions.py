"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building, to_first
from luciole.exporters.onnx.integers import dequantized, quantized
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import affine_of


def _order(k: Building, value: Value) -> list[int] | None:
    return to_first(len(value.shape)) if k.is_first(value) else None


@rule(Quantize)
def quantize(k: Building, op: Quantize) -> Term | None:
    """Make codes; those of other scales are real numbers in between."""
    order = _order(k, op.input)
    x = k.of(op.input) if order is None else k.channels_first(op.input)
    if affine_of(op.input) is not None:
        x = dequantized(k, op.input, x, order)
    y = quantized(k, op.output, x, order)
    if order is None:
        return y
    k.put_first(op.output, y)
    return None


@rule(Dequantize)
def dequantize(k: Building, op: Dequantize) -> Term | None:
    order = _order(k, op.input)
    if order is None:
        return dequantized(k, op.input, k.of(op.input))
    k.put_first(op.output, dequantized(k, op.input, k.channels_first(op.input), order))
    return None
