"""Figures of operators: multiply-accumulates, the usual count of work, and parameters."""

from __future__ import annotations

from luciole.ir.fields import INDEX
from luciole.ir.op import Op
from luciole.ir.quantization import is_affine
from luciole.ir.value import Value, element_count


def macs(op: Op) -> int | None:
    """Count multiply-accumulates of one run; an unknown extent (a batch) counts as 1.

    None for operators that multiply no matrices. Additions of a bias and taps on padding count as
    they do in common tools: the first not, the second as if they were computed.
    """
    return op.macs() if op.results else None  # without results, verify says so


def parameters(op: Op) -> dict[Value, int]:
    """List the constants that an operator computes with, and the numbers in each.

    Learned levels count as the weights that they stand for; scales, zero points, and
    constants for shapes, axes and indices are no parameters.
    """
    packed = op.weight_shape() if op.results else None
    if packed is not None:
        slots = dict(op.named_operands())
        weights, bias = slots["weights_binary"], slots.get("bias")
        counts = {weights: element_count(packed)}
        counts |= {} if bias is None else {bias: element_count(bias.dims)}
        return {v: n for v, n in counts.items() if v is not None and v.is_constant}
    operands = {v for v in op.operands if v is not None and v.is_constant and _is_number(v)}
    return {value: element_count(value.dims) for value in operands}


def _is_number(value: Value) -> bool:
    """Return whether a constant holds numbers: integers of 32 and 64 bits do where they have a
    scale.
    """
    return is_affine(value) or value.dtype not in INDEX
