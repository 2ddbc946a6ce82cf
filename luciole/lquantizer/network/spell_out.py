"""Let operators that have no kernel on a scheme's integers, or lose by them, be others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Graph, Op
from luciole.ir.analysis.floats import is_float
from luciole.ir.ops.elementwise_binary import Mul, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Neg, Square
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.reduce import Mean
from luciole.lquantizer.assignment.schemes import Scheme
from luciole.lquantizer.network.places import obstacle
from luciole.schema.enums import ActivationFunctionType as Act

_BYTE = 8


def spell_out(graph: Graph, schemes: dict[Op, Scheme], *, finer: bool) -> None:
    """Replace NEG by a product with -1, SQUARE by one with itself, and SQUARED_DIFFERENCE by a
    difference and its square, where they have no kernel in their schemes; the new operators get
    the schemes of the old. Where results shall be ``finer``, AVERAGE_POOL_2D over all pixels
    becomes MEAN in 8 bits, which has a scale of its own.
    """
    for op in list(graph.ops):
        types = schemes.get(op)
        spelled = None if types is None else _spelled(op, types, finer=finer)
        if spelled is None or types is None:
            continue
        before = set(graph.ops)
        name = op.output.name
        last = graph.insert_after(op, spelled(graph, op), graph.unique_name(name)).output
        op.output.replace_with(last)
        graph.remove(op)
        schemes |= {new: types for new in graph.ops if new not in before}
        del schemes[op]
        last.name = name


def _spelled(op: Op, types: Scheme, *, finer: bool) -> Callable[[Graph, Op], Op] | None:
    """Return the function that spells an operator out, None where it stays."""
    spelling = _mean if isinstance(op, AveragePool2D) else _SPELLED.get(type(op))
    if spelling is None or types.activations is None or not is_float(op.operands[0]):
        return None
    if isinstance(op, AveragePool2D):
        is_byte = types.activation_bits == _BYTE and obstacle(op, types) is None
        return spelling if finer and is_byte and _takes_all(op) else None
    return None if obstacle(op, types) is None else spelling


def _takes_all(op: AveragePool2D) -> bool:
    """Check whether there is one window, of all pixels."""
    size, window = op.value.shape[1:3], (op.filter_height, op.filter_width)
    return size == window and op.output.shape[1:3] == (1, 1) and op.activation == Act.NONE


def _mean(graph: Graph, op: Op) -> Op:
    name = graph.unique_name(f"{op.output.name}/axes")
    axes = graph.add_constant(name, np.array([1, 2], np.int32))
    return Mean(op.required(0), axes, keep_dims=True)


def _negative(graph: Graph, op: Op) -> Op:
    name = graph.unique_name(f"{op.output.name}/minus one")
    return Mul(op.required(0), graph.add_constant(name, np.array([-1.0], np.float32)))


def _square(_: Graph, op: Op) -> Op:
    return Mul(op.required(0), op.required(0))


def _squared_difference(graph: Graph, op: Op) -> Op:
    name = graph.unique_name(f"{op.output.name}/difference")
    difference = graph.insert_before(op, Sub(op.required(0), op.required(1)), name).output
    return Mul(difference, difference)


_SPELLED: dict[type[Op], Callable[[Graph, Op], Op]] = {
    Neg: _negative,
    Square: _square,
    SquaredDifference: _squared_difference,
}
