"""Find operators whose small inputs decide: integers of one step for all would lose them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.weights import has_weights
from luciole.ir.ops.elementwise_unary import Log, Rsqrt
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.formats.affine import Range, of_range
from luciole.lquantizer.report import snr_db
from luciole.lquantizer.rewrite.integers import insert_pairs, to_integers

REASON = "small inputs decide its result, and integers would lose them"

_LEAST = 30.0
"""Decibels between an operator's result and its error, where nothing but this one is rounded."""
_WITH_A_POLE = (Rsqrt, Log)


def fragile(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    seen: Mapping[Value, Seen],
    limits: Callable[[Value, TensorType], Range],
) -> set[Op]:
    """Find those among the operators on ``integers`` that lose their result by them, measured with
    their kernels on what was ``seen``, and the operators in front of them that work for nothing
    else: in a layer normalization, what makes the variance.
    """
    found: set[Op] = set()
    for op in (one for one in graph.ops if one in integers and isinstance(one, _WITH_A_POLE)):
        around = (op.x, op.output)
        if not all(value in seen for value in around):
            continue  # its range is given
        grids = [of_range(limits(value, integers[op]), integers[op]) for value in around]
        if _snr(op, seen[op.x], grids[0], grids[1]) < _LEAST:
            found |= _with_those_before(op)
    return found & set(integers)


def _snr(op: Op, seen: Seen, before: Affine, behind: Affine) -> float:
    """Compare what an operator makes of the numbers that a tensor held, in floats and in integers;
    in decibels.
    """
    middles, counts = seen.histogram()
    kept = (counts > 0) & (middles > 0)
    x, weight = middles[kept].astype(np.float32), counts[kept]
    if not len(x):
        return np.inf
    wanted, found = _alone(op, x, ()), _alone(op, x, (before, behind))
    error = float(np.square(found - wanted) @ weight)
    return snr_db(float(np.square(wanted) @ weight), error) or np.inf


def _alone(op: Op, x: Array, grids: tuple[Affine, ...]) -> Array:
    """Run an operator by itself on numbers [n]."""
    model = Model()
    graph = model.add_graph(Graph("alone"))
    given = graph.add_input("x", x.shape)
    twin = graph.append(op.clone([given]), "y")
    graph.outputs = [twin.output]
    if grids:
        insert_pairs(graph, dict(zip((given, twin.output), grids, strict=True)), {}, {twin})
        to_integers(graph, {twin})
    (found,) = Interpreter(model).run({"x": x}).values()
    return found.astype(np.float64)


def _with_those_before(op: Op) -> set[Op]:
    found, left = {op}, [op]
    while left:
        makers = [v.producer.op for v in left.pop().operands if v is not None and v.producer]
        new = [maker for maker in makers if maker not in found and _works_for(maker, found)]
        found.update(new)
        left += new
    return found


def _works_for(op: Op, readers: set[Op]) -> bool:
    """Tell whether only some operators use what another one makes, which is no layer."""
    used = [use.op for value in op.results for use in value.users]
    ends = any(value.is_output for value in op.results)
    return not ends and not has_weights(op) and all(user in readers for user in used)
