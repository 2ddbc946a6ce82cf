"""Bring a float network into the form that is quantized: what has no kernel on a scheme's integers,
or loses by them, is spelled out by other operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from luciole.ir import Graph, Model, Op, TensorType
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.weights import table_constant
from luciole.ir.ops.elementwise_binary import Mul, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Neg, Square
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.reduce import Mean
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.folding.fold_constants import FoldConstants
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.ir.passes.folding.fuse_batch_norm import fuse_batch_norm
from luciole.ir.rewriting.lookups import as_lookup
from luciole.ir.text.common import first_named
from luciole.kernels.core import evaluation
from luciole.lquantizer.assignment.choices import Choices
from luciole.lquantizer.assignment.schemes import (
    FROM_FAKE_QUANT,
    Chosen,
    Scheme,
    UniformOptions,
    of_table,
    uniform_types,
    without_blocks,
)
from luciole.lquantizer.network.fake_quant import (
    NOTHING,
    TrainedGrids,
    format_asked_for,
    of_tensors,
    of_weights,
)
from luciole.lquantizer.network.grids import without_grid
from luciole.lquantizer.network.places import integers_of, obstacle, types_of
from luciole.lquantizer.network.real import make_real, real_network, take_out_pairs
from luciole.lquantizer.report import shown
from luciole.schema.enums import ActivationFunctionType as Act

_LISTED = 5
"""Names in a warning."""
_BYTE = 8


def float_network(model: Model) -> Model:
    """Copy a network with activations and batch normalization fused, its constants real numbers.

    Raises QuantizeError where it is quantized already.
    """
    work = real_network(model)
    make_float(work.graph)
    return work


def make_float(graph: Graph) -> None:
    """Fuse activations and batch normalization, and let constants be real numbers; operators that
    are left are the same ones.
    """
    make_real(graph)
    FoldConstants(evaluation.evaluate, None)(graph)
    while fuse_batch_norm(graph) or fuse_activation_function(graph):
        remove_dead(graph)
    remove_dead(graph)


@dataclass(frozen=True)
class Start:
    """A network ready to be given integers: how, and which scales are known before data are."""

    work: Model
    options: UniformOptions
    schemes: dict[Op, Scheme]
    trained: TrainedGrids
    dropped: int = 0
    """FAKE_QUANT operators that were taken out and are not minded."""
    pairs: int = 0
    """Pairs of QUANTIZE and DEQUANTIZE, likewise."""
    unblocked: Sequence[Op] = ()
    """Layers that were to have weights in blocks, and cannot."""

    def warnings(self, *, has_data: bool) -> list[str]:
        """Warn of operators that were taken out, and of tensors whose ranges are from data though
        others' are from FAKE_QUANT.
        """
        removed = []
        if self.pairs:
            removed.append(f"{self.pairs} pairs of QUANTIZE and DEQUANTIZE were taken out")
        if self.dropped:
            count = f"{self.dropped} FAKE_QUANT operators were taken out"
            removed.append(f"{count}: --scheme {FROM_FAKE_QUANT} minds what they say")
        return [*self._without_blocks(), *(removed or self._untrained(has_data=has_data))]

    def _without_blocks(self) -> list[str]:
        if not self.unblocked:
            return []
        names = [shown(op.name) for op in self.unblocked]
        return [
            f"no blocks in {first_named(names, _LISTED)}, but a scale for each output: a "
            "dense layer has blocks where its inputs divide into them and its weights are not tiny"
        ]

    def _untrained(self, *, has_data: bool) -> list[str]:
        if not self.trained.tensors or not has_data:
            return []
        graph = self.work.graph
        open_ = without_grid(graph, types_of(integers_of(self.schemes)), self.trained.tensors)
        names = [shown(v.name) for v in graph.values if v in open_]
        if not names:
            return []
        return [f"no FAKE_QUANT says the range of {', '.join(names)}: it is from the data"]


def prepared(model: Model, options: UniformOptions, choices: Choices) -> Start:
    """Bring a float network into the form that is quantized, its FAKE_QUANT operators read, and
    choose schemes for its operators.

    Raises QuantizeError where the scheme is that of FAKE_QUANT operators and there are none, or
    none that can be.
    """
    work = model.clone()
    graph = work.graph
    reads_ranges = options.scheme == FROM_FAKE_QUANT
    pairs = 0 if reads_ranges else take_out_pairs(graph)
    options, chosen = options.for_graph(graph), choices(graph)
    if not reads_ranges:
        make_float(graph)
        known = _with_lookups({op: chosen[op] for op in graph.ops if op in chosen})
        schemes = uniform_types(known)
        unblocked = without_blocks(known, schemes)
        if not types_of(schemes):
            return Start(work, options, schemes, NOTHING, pairs=pairs, unblocked=unblocked)
        dropped = len(of_tensors(graph, TensorType.INT8))
        make_float(graph)  # what they were between may be one operator
        schemes = {op: types for op, types in schemes.items() if op in set(graph.ops)}
        spell_out(graph, schemes, finer=options.per_operator is None)
        return Start(work, options, schemes, NOTHING, dropped, pairs, unblocked)
    read = format_asked_for(work)
    options = replace(options, scheme=str(read), rescale="none")  # they fit no other weights
    weights = of_weights(graph)
    make_float(graph)
    dtype = options.types.activations
    assert dtype is not None, "tensors between operators become integers"
    trained = TrainedGrids(of_tensors(graph, dtype), weights)
    schemes = uniform_types({op: chosen[op] for op in graph.ops if op in chosen}, read)
    return Start(work, options, schemes, trained)


def _with_lookups(known: Mapping[Op, Chosen]) -> dict[Op, Chosen]:
    """Replace GATHER by EMBEDDING_LOOKUP for rows that are stored in few bits."""
    formats: dict[Op, Chosen] = {}
    for op, chosen in known.items():
        format = None if table_constant(op) is None else of_table(chosen)
        lookup = as_lookup(op) if isinstance(op, Gather) and format is not None else op
        formats[lookup or op] = chosen if format is None or lookup is None else format
    return formats


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
