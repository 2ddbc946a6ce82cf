"""Find operators that cut off on both sides, and the linear unit that does so alone."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import Clamp, Relu, Relu0To1, Relu6, ReluN1To1
from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.patterns import number_of, with_constant
from luciole.ir.value import Value

_UNITS: tuple[type[Clamp], ...] = (Relu6, ReluN1To1, Relu0To1)


def clamped(graph: Graph, op: Op, low: type[Op], high: type[Op]) -> bool:
    """Replace an operator and the one before it by one linear unit where they are one: the one of
    the class ``low`` cuts off below, the other, of ``high``, above.
    """
    outer = _limit(op)
    before = outer[0].producer.op if outer is not None and outer[0].producer is not None else None
    inner = _limit(before) if before is not None else None
    if outer is None or inner is None or before is None:
        return False
    if isinstance(op, low) and isinstance(before, high):
        limits = (outer[1], inner[1])
    elif isinstance(op, high) and isinstance(before, low):
        limits = (inner[1], outer[1])
    else:
        return False
    unit = next((unit for unit in _UNITS if unit.limits == limits), None)
    if unit is None or inner[0].shape != op.output.shape:
        return False
    become(graph, op, unit(inner[0]))
    return True


def _limit(op: Op) -> tuple[Value, float] | None:
    """Find the operand and the limit of MAXIMUM, MINIMUM and RELU on floats, None for others."""
    if isinstance(op, Relu) and is_float(op.features):
        return op.features, 0.0
    pair = with_constant(op) if isinstance(op, Binary) and is_float(op.output) else None
    number = None if pair is None else number_of(pair[1])
    return None if pair is None or number is None else (pair[0], number)
