"""Find integers that operators move to tensors where they stand for other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luciole.ir.findings import Finding, Severity
from luciole.ir.op import Op
from luciole.ir.quant import Like
from luciole.ir.quantization import ACTIVATIONS, Affine
from luciole.ir.value import Value


def misplaced(
    op: Op, operands: Sequence[Value | None], results: Sequence[Value]
) -> Iterator[tuple[Value, Value]]:
    """Yield the tensors among ``operands`` and ``results``, as many as the operator has, between
    which it moves integers that stand for other numbers in the second: a rescaling would change
    some of them. Tensors with a scale for each channel are not compared.
    """
    rule = None if op.quant is None else op.quant.result
    if not isinstance(rule, Like):
        return
    for slot, value in enumerate(operands):
        if value is None or op.operand_field(slot).name not in rule.operands:
            continue
        yield from ((value, result) for result in results if _differ(value, result))


def _differ(value: Value, result: Value) -> bool:
    """Return whether equal integers of two tensors stand for other numbers."""
    if value.dtype != result.dtype or value.dtype not in ACTIVATIONS:
        return False
    before, behind = Affine.given(value), Affine.given(result)
    if before is None or behind is None or not before.scale.size == behind.scale.size == 1:
        return False
    return not before.keeps_codes(behind)


def check_moved(op: Op, path: str) -> Iterator[Finding]:
    """List the integers that an operator moves to where they stand for other numbers: as errors
    where kernels copy them, as warnings where TFLite's alone do so, or refuse them.
    """
    rule = None if op.quant is None else op.quant.result
    for value, result in misplaced(op, op.operands, op.results):
        assert isinstance(rule, Like), "its operands have the scale of the result"
        if value.dtype not in rule.rescaled:
            yield _finding(op, path, value, result, rule)


def _finding(op: Op, path: str, value: Value, result: Value, rule: Like) -> Finding:
    sentence = f"{op}: {_described(value)} and {_described(result)} must have one scale"
    if rule.computed:
        sentence += " and zero point in TFLite: it is computed in floats here"
        return Finding(Severity.WARNING, "GRIDS", path, sentence)
    if not rule.rescaled:
        sentence += " and zero point: integers are moved as they are"
        return Finding(Severity.ERROR, "GRIDS", path, sentence)
    types = ", ".join(dtype.name for dtype in rule.rescaled)
    sentence += f" and zero point in TFLite, which rescales {types} alone"
    return Finding(Severity.WARNING, "GRIDS", path, sentence)


def _described(value: Value) -> str:
    affine = Affine.given(value)
    assert affine is not None, "only tensors with scales are compared"
    return f"{value.name!r} ({affine.text})"
