"""Let operators that have no kernel on a scheme's integers be others that have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Graph, Op, Value
from luciole.ir.ops.elementwise_binary import Mul, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Neg, Square
from luciole.lquantizer.network.grids import is_float
from luciole.lquantizer.schemes import Scheme
from luciole.lquantizer.uniform.places import obstacle


def spell_out(graph: Graph, schemes: dict[Op, Scheme]) -> None:
    """Let NEG be a product with -1, SQUARE one with itself, and SQUARED_DIFFERENCE a difference and
    its square, where they have no kernel in their schemes, which those get
    instead: that of NEG does not mind scales.
    """
    for op in list(graph.ops):
        spelled = _SPELLED.get(type(op))
        types = schemes.get(op)
        if spelled is None or types is None or types.activations is None:
            continue
        if not is_float(op.operands[0]) or obstacle(op, types) is None:
            continue
        before = set(graph.ops)
        name = op.output.name
        last = graph.insert_after(op, spelled(graph, op), graph.unique_name(name)).output
        op.output.replace_with(last)
        graph.remove(op)
        schemes |= {new: types for new in graph.ops if new not in before}
        del schemes[op]
        last.name = name


def _negative(graph: Graph, op: Op) -> Op:
    name = graph.unique_name(f"{op.output.name}/minus one")
    return Mul(_operand(op, 0), graph.add_constant(name, np.array([-1.0], np.float32)))


def _square(_: Graph, op: Op) -> Op:
    return Mul(_operand(op, 0), _operand(op, 0))


def _squared_difference(graph: Graph, op: Op) -> Op:
    name = graph.unique_name(f"{op.output.name}/difference")
    difference = graph.insert_before(op, Sub(_operand(op, 0), _operand(op, 1)), name).output
    return Mul(difference, difference)


def _operand(op: Op, slot: int) -> Value:
    value = op.operands[slot]
    assert value is not None, "no operand of these may be left out"
    return value


_SPELLED: dict[type[Op], Callable[[Graph, Op], Op]] = {
    Neg: _negative,
    Square: _square,
    SquaredDifference: _squared_difference,
}
