"""Keep integers away from poles: an operator whose integers could reach one, or whose small inputs,
which decide, integers of one step for all would lose, stays float, and what makes its operand is
not rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.poles import poles_of, refused_pole
from luciole.ir.analysis.weights import has_weights, is_layer
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.select import Choice
from luciole.ir.quant import Like, Pole
from luciole.ir.quantization import Affine
from luciole.ir.value import Use
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.network.bounds import Interval, intervals_of
from luciole.lquantizer.network.grids import Grids
from luciole.lquantizer.network.uneven import LEAST, lossy, normalizations
from luciole.lquantizer.report import snr_db
from luciole.lquantizer.rewrite.integers import insert_pairs, to_integers

FRAGILE = "small inputs decide its result, and integers would lose them"
_AROUND = "rounded to integers, what it gives would reach a pole"


@dataclass(frozen=True)
class _Held:
    """Statistics of tensors, None where nothing was watched, and bounds of their numbers for any
    input.
    """

    seen: Mapping[Value, Seen] | None
    intervals: Mapping[Value, Interval]

    def is_on_both_sides(self, value: Value) -> bool:
        """Check whether numbers of a tensor lie on both sides of 0, by its statistics, or else by
        its bounds.
        """
        if self.seen is not None:
            return value in self.seen and self.seen[value].low <= 0 <= self.seen[value].high
        low, high = self.intervals.get(value, (-np.inf, np.inf))
        return low < 0 < high

    def is_apart(self, value: Value) -> bool:
        """Check whether a tensor never holds 0."""
        low, high = self.intervals.get(value, (-np.inf, np.inf))
        return low > 0 or high < 0

    def may_be_below_0(self, value: Value) -> bool:
        """Check whether a tensor may hold numbers below 0."""
        low, _ = self.intervals.get(value, (-np.inf, np.inf))
        return low < 0


def kept_from_poles(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    seen: Mapping[Value, Seen],
    grids: Callable[[Mapping[Op, TensorType]], Grids],
) -> dict[Op, str]:
    """Find the operators on ``integers`` that are to stay float, with the reason.

    Those are operators whose kernels refuse some of the integers that an operand with a pole may
    be, by the ``grids`` that are chosen for operators on integers; those that lose their result,
    measured with their kernels on what was ``seen``; those that make what has a pole in floats (in
    a layer normalization the variance); and those that make what is normalized where records are of
    such different sizes that integers lose the small ones.
    """
    kept: dict[Op, str] = {}
    if not any(op.poles for op in graph.ops) and not normalizations(graph):
        return kept
    held = _Held(seen, intervals_of(graph))
    while True:
        left = {op: dtype for op, dtype in integers.items() if op not in kept}
        new = _kept(graph, left, held, grids(left))
        if not new:
            return kept
        kept |= new


def kept_exact(graph: Graph) -> set[Value]:
    """Find the tensors that must not be rounded, because an operator might reach its pole, or lose
    the small numbers near it: the operands with a pole, and results and constants of their makers.
    """
    held = _Held(None, intervals_of(graph))
    kept: set[Value] = set()
    for op in graph.ops:
        operands = op.given_operands()
        poles = [operands[pole.operand] for pole in poles_of(op) if not pole.finite]
        makers = _before({op, *_around(op, held)}) - {op} if poles else set()
        for maker in makers:
            beside = () if is_layer(maker) else maker.operands
            kept |= {v for v in beside if v is not None and v.is_constant} | set(maker.results)
        kept.update(poles)
    return kept


def _kept(
    graph: Graph, integers: Mapping[Op, TensorType], held: _Held, grids: Grids
) -> dict[Op, str]:
    """Find the operators among those on ``integers`` that a pole keeps in floats."""
    kept: dict[Op, str] = {}
    for op in (op for op in graph.ops if poles_of(op)):
        reason = _reason(op, held, grids) if op in integers else _AROUND
        if reason is not None:
            before = FRAGILE if reason == FRAGILE else _AROUND
            around = _before({op, *_around(op, held)})
            kept = dict.fromkeys(around & integers.keys(), before) | kept
            kept |= {op: reason} if op in integers else {}
    small = lossy(graph, held.seen or {}, grids.tensors)
    small |= {op for op in integers if isinstance(op, Mul) and _has_coarse_factor(op, held, grids)}
    return dict.fromkeys(_before(small) & integers.keys(), FRAGILE) | kept


def _has_coarse_factor(op: Mul, held: _Held, grids: Grids) -> bool:
    """Return whether an operator multiplies by what an operator with a pole gave, and loses the
    small ones of these factors: a record close to the pole stretches the step of all.
    """
    affines = dict(_affines(op, grids))
    for name, value in op.given_operands().items():
        maker = None if value.producer is None else value.producer.op
        numbers = (held.seen or {}).get(value)
        if maker is None or not poles_of(maker) or numbers is None or name not in affines:
            continue
        if _kept_of_each(numbers, affines[name]) < LEAST[affines[name].dtype]:
            return True
    return False


def _kept_of_each(seen: Seen, affine: Affine) -> float:
    """Compute the mean ratio of the numbers that a tensor held, each by itself, to the error of
    rounding them, in decibels.
    """
    middles, counts = seen.histogram()
    kept = (counts > 0) & (middles != 0)
    errors = float(affine.scale[0]) ** 2 / 12 / np.square(middles[kept])
    return snr_db(float(counts[kept].sum()), float(errors @ counts[kept])) or np.inf


def _reason(op: Op, held: _Held, grids: Grids) -> str | None:
    """Return the reason why an operator with a pole cannot compute with integers, None where it
    can.
    """
    affines, values = dict(_affines(op, grids)), op.given_operands()
    pole = refused_pole(op, affines)
    if pole is not None and (0 in pole.refused or held.may_be_below_0(values[pole.operand])):
        return reason_of(pole)
    (name, value), *others = values.items()
    numbers = (held.seen or {}).get(value)
    if others or numbers is None or name not in affines:
        return None  # its range is given
    behind = grids.tensors[op.output]
    is_lossy = _snr(op, numbers, affines[name], behind) < LEAST[behind.dtype]
    return FRAGILE if is_lossy else None


def _affines(op: Op, grids: Grids) -> Iterator[tuple[str, Affine]]:
    """Yield the names of operands that become integers, and which ones."""
    for slot, (name, value) in enumerate(op.named_operands()):
        affine = grids.operands.get(Use(op, slot))
        if affine is None and value is not None:
            affine = grids.tensors.get(value)
        if affine is not None:
            yield name, affine


def reason_of(pole: Pole) -> str:
    """Return the reason why an operator gets no integers that may reach its pole."""
    numbers = "0" if 0 in pole.refused else "below 0"
    return f"its operand {pole.operand} may be {numbers} in integers, where it has no result"


def _around(op: Op, held: _Held) -> set[Op]:
    """Find the operators that must compute with floats so that rounding takes a float operator's
    operands to no pole: where numbers lie on one side of it, what makes them from what cannot be 0;
    where they lie on both, so that 0 comes of any rounding and something must choose others then,
    all that lies between the same layers.
    """
    around: set[Op] = set()
    for pole in poles_of(op):
        value = op.given_operands()[pole.operand]
        if pole.finite or value.is_constant:
            continue
        block = _block(op) if held.is_on_both_sides(value) else _makers(value, held)
        around |= block
        if not any(isinstance(one, Choice) for one in block):
            around |= _layer_behind(value)
    return around


def _block(op: Op) -> set[Op]:
    """Find all operators that lie between the same layers as one."""
    block, left = {op}, [op]
    while left:
        one = left.pop()
        makers = [v.producer.op for v in one.operands if v is not None and v.producer is not None]
        readers = [use.op for value in one.results for use in value.users]
        new = {other for other in (*makers, *readers) if not is_layer(other)} - block
        block |= new
        left += new
    return block


def _makers(value: Value, held: _Held) -> set[Op]:
    """Find the operators that compute a tensor, back to layers and to operators that cannot give 0
    whatever their operands are rounded to.
    """
    makers: set[Op] = set()
    left: list[Value | None] = [value]
    while left:
        one = left.pop()
        made = None if one is None else one.producer
        if made is not None and made.op not in makers and not is_layer(made.op):
            makers.add(made.op)
            is_apart = held.is_apart(made.op.output)
            operands = (v for v in made.op.operands if v is not None)
            left += [v for v in operands if not is_apart or held.is_apart(v)]
    return makers


def _layer_behind(value: Value) -> set[Op]:
    """Find the layer whose results a tensor holds, at most moved."""
    while value.producer is not None:
        op = value.producer.op
        if is_layer(op):
            return {op} if has_weights(op) else set()
        if op.quant is None or not isinstance(op.quant.result, Like) or op.operands[0] is None:
            break
        value = op.operands[0]
    return set()


def _before(kept: set[Op]) -> set[Op]:
    """Add the operators whose results only these operators use."""
    kept = set(kept)
    left = [value for op in kept for value in op.operands]
    while left:
        value = left.pop()
        maker = None if value is None or value.producer is None else value.producer.op
        if maker is not None and maker not in kept and _works_for(maker, kept):
            kept.add(maker)
            left += maker.operands
    return kept


def _works_for(op: Op, readers: set[Op]) -> bool:
    """Check whether an operator is no layer, and only ``readers`` use its results."""
    users = [use.op for value in op.results for use in value.users]
    ends = any(value.is_output for value in op.results)
    return not ends and not has_weights(op) and all(user in readers for user in users)


def _snr(op: Op, seen: Seen, before: Affine, behind: Affine) -> float:
    """Compare an operator's results on the numbers that a tensor held, in floats and in integers;
    in decibels.
    """
    middles, counts = seen.histogram()
    kept = (counts > 0) & (middles > 0)
    x, weight = middles[kept].astype(np.float32), counts[kept]
    if not len(x):
        return np.inf
    exact, rounded = _alone(op, x, ()), _alone(op, x, (before, behind))
    error = float(np.square(exact - rounded) @ weight)
    return snr_db(float(np.square(exact) @ weight), error) or np.inf


def _alone(op: Op, x: Array, grids: tuple[Affine, ...]) -> Array:
    """Run an operator by itself on numbers [n]."""
    model = Model()
    graph = model.add_graph(Graph("alone"))
    operand = graph.add_input("x", x.shape)
    twin = graph.append(op.clone([operand]), "y")
    graph.outputs = [twin.output]
    if grids:
        insert_pairs(graph, dict(zip((operand, twin.output), grids, strict=True)), {}, {twin})
        to_integers(graph, {twin})
    (y,) = Interpreter(model).run({"x": x}).values()
    return y.astype(np.float64)
