"""Settle a graph before it is planned: shapes for given inputs, and all that is constant then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.microscaling import decode_blocks
from luciole.interpreter.simulated import simulate
from luciole.ir import Array, Buffer, Graph, GraphError, Op, TensorType, Value
from luciole.ir.blockwise import Blockwise, blocks_of
from luciole.ir.calls import remembered
from luciole.ir.dtypes import array_bytes, pack
from luciole.ir.infer import infer_op
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.passes.canonical.inline_calls import inline_calls
from luciole.ir.passes.folding.fold_constants import folded
from luciole.ir.passes.scans import scan_of
from luciole.ir.sparsity import dense
from luciole.ir.value import element_count, shape_text
from luciole.kernels.core import allocation, evaluation
from luciole.kernels.core.errors import MemoryLimitError


@dataclass(frozen=True)
class Settled:
    """A copy of a graph in which every shape is known that does not depend on the contents of
    inputs.

    ``ops`` are left to run, in order; ``constants`` hold the contents of all others' results and of
    the graph's own constants; ``made_bytes`` is what those take that the file does not hold as they
    are. ``values`` and ``sources`` lead from the graph's tensors to the copy's, and from the copy's
    operators to the graph's: from all of a graph that is called to the call. ``simulated`` says of
    the graph's operators on integers that are computed in floats why they are.
    """

    graph: Graph
    ops: Sequence[Op]
    constants: Mapping[Value, Array]
    made_bytes: int
    values: Mapping[Value, Value]
    sources: Mapping[Op, Op]
    simulated: Mapping[Op, str]


def settle(
    graph: Graph,
    shapes: Mapping[Value, tuple[int, ...]],
    memory_limit: int,
    *,
    simulates: bool = True,
) -> Settled:
    """Settle a copy of a graph whose inputs have the given shapes; others keep what the graph says.

    Raises ShapeError where operands do not fit together, GraphError for an operator that computes
    an input or a variable, and MemoryLimitError where sparse constants take more than
    ``memory_limit`` bytes with all their elements. What would take more is not folded. Unless it
    ``simulates``, operators on integers stay as they are, whether there are kernels or not.
    """
    copy, values = graph.clone()
    for value, shape in shapes.items():
        values[value].shape = shape
    sources = dict(zip(copy.ops, graph.ops, strict=True))
    inline_calls(copy, sources)
    decode_blocks(copy, sources)
    simulated = simulate(copy, sources, values) if simulates else {}
    constants = _Constants(copy.values, memory_limit)
    with remembered():
        ops = _unfolded(copy.ops, constants)
    return Settled(copy, ops, constants.arrays, constants.made_bytes, values, sources, simulated)


class _Constants:
    """The contents of constants, first of ``values``, within a limit in bytes for contents that
    have to be made.
    """

    def __init__(self, values: Sequence[Value], limit: int) -> None:
        self.arrays: dict[Value, Array] = {}
        self.made_bytes = 0
        self._limit = limit
        for value in values:
            self._spell_out(value)
            self._decode(value)
            self._hold(value)

    def may_make(self, size: int) -> bool:
        """Return whether there is memory for a constant before anyone asked for it."""
        return self.made_bytes + size <= self._limit

    def make(self, value: Value, array: Array) -> None:
        """Turn an operator's result into a constant."""
        value.producer = None
        value.make_constant(array)
        self._hold(value)
        self.made_bytes += array.nbytes

    def _spell_out(self, value: Value) -> None:
        """Give a sparse constant all its elements: shape rules then check what kernels read.

        Raises MemoryLimitError where that grows beyond the limit.
        """
        if value.sparsity is None or not value.is_constant:
            return
        size = array_bytes(value.dtype, element_count(value.dims)) or 0
        self._take(value, size, "with all its elements")
        value.buffer, value.sparsity = Buffer(pack(dense(value), value.dtype)), None

    def _decode(self, value: Value) -> None:
        """Turn a constant whose blocks have scales of their own into real numbers, with which
        operators compute as with any, unless all of them read blocks.

        Raises LucioleError where the scales do not fit, and MemoryLimitError as for sparse ones.
        """
        codes = value.data if blocks_of(value) is not None else None
        blocks = None if codes is None else Blockwise.given(value)
        if codes is None or blocks is None or _reads_blocks(value, blocks):
            return
        self._take(value, 4 * codes.size, "as real numbers")
        value.quantization = None
        value.make_constant(blocks.decode(codes).astype(np.float32))

    def _take(self, value: Value, size: int, form: str) -> None:
        """Count the bytes of a constant. Raises MemoryLimitError beyond the limit."""
        if not self.may_make(size):
            raise MemoryLimitError(
                f"tensor {value.name!r} {shape_text(value.shape)} takes {size} bytes {form}, "
                f"{self._limit - self.made_bytes} are allowed"
            )
        self.made_bytes += size

    def _hold(self, value: Value) -> None:
        """Keep a constant's contents: in C order, as compiled kernels walk them."""
        data = value.data
        if data is not None:
            self.arrays[value] = allocation.chosen().given(data)


def _reads_blocks(value: Value, blocks: Blockwise) -> bool:
    """Return whether kernels compute with a constant's blocks as they are."""
    takes = value.dtype in (TensorType.INT4, TensorType.INT8) and blocks.is_symmetric
    are_layers = all(_multiplies(op, value) or _looks_up(op, value) for op, _ in value.users)
    return are_layers and bool(value.users) and not value.is_output and takes


def _multiplies(op: Op, weights: Value) -> bool:
    dense = isinstance(op, FullyConnected) and op.input is not weights
    return dense and op.required(0).dtype == TensorType.FLOAT32


def _looks_up(op: Op, table: Value) -> bool:
    return isinstance(op, EmbeddingLookup) and op.infer_dtype() != table.dtype


def _unfolded(ops: Sequence[Op], constants: _Constants) -> list[Op]:
    """Infer shapes in order, and compute constants."""
    left = []
    for op in ops:
        _refuse_given(op)
        infer_op(op, declared=False)
        if isinstance(op, While):
            _settle_lists(op)
        for value, dtype in zip(op.results, op.result_dtypes(len(op.results)), strict=True):
            value.dtype = dtype  # what kernels write, whatever the file says
        modest = constants.may_make(_result_bytes(op))
        results = folded(op, evaluation.evaluate) if modest else None
        if results is None:
            left.append(op)
            continue
        for value, array in zip(op.results, results, strict=True):
            constants.make(value, array)
    return left


def _settle_lists(op: While) -> None:
    """Settle the shapes of lists that a loop writes element by element: they stay as long as they
    were, which shape rules for the operators that do it cannot know.
    """
    scan = scan_of(op)
    for place in () if scan is None else scan.written:
        op.results[place].shape = op.inputs[place].shape


def _result_bytes(op: Op) -> int:
    """Count the bytes of an operator's results, with 1 for every extent that is not known."""
    return sum(array_bytes(v.dtype, element_count(v.dims)) or 0 for v in op.results)


def _refuse_given(op: Op) -> None:
    """Raise GraphError for a result whose place and extents somebody else gives."""
    for value in op.results:
        if value.is_input or value.is_variable:
            what = "an input" if value.is_input else "a variable"
            raise GraphError(f"{op} computes {value.name!r}, which is {what} and no result")
