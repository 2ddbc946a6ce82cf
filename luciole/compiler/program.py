"""A network compiled: where its tensors lie, what callers give and get, and the two files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.compiler.ends import End, enter, leave
from luciole.compiler.fixed import join_sums, keep_fixed
from luciole.compiler.lower import Network, lower
from luciole.compiler.options import CompileOptions
from luciole.compiler.text import CTYPES
from luciole.compiler.thresholds import pull_thresholds
from luciole.compiler.writer import Writer
from luciole.ir import Graph, LucioleError, Model, TensorType, UnsupportedError, Value
from luciole.ir.analysis.layout import Layout, lay_out
from luciole.ir.analysis.lifetimes import Lifetime
from luciole.ir.dtypes import NUMPY
from luciole.ir.graph import Signature
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import CCall, Control

ALIGNMENT = 8


@dataclass(frozen=True, eq=False)
class Program:
    """The ``header`` and the ``source`` of a network, and their contents: bytes of tables, bytes of
    memory that tensors take while it runs, and the tensors that callers give and get.
    """

    options: CompileOptions
    inputs: Sequence[End]
    outputs: Sequence[End]
    calls: Sequence[CCall]
    layout: Layout
    writer: Writer

    @property
    def header(self) -> str:
        """The text of the header."""
        return self.files[f"{self.options.name}.h"]

    @property
    def source(self) -> str:
        """The text of the source file."""
        return self.files[f"{self.options.name}.c"]

    @property
    def files(self) -> dict[str, str]:
        """Both files by name."""
        name = self.options.name
        return dict(zip((f"{name}.h", f"{name}.c"), self.writer.files, strict=True))

    @property
    def is_stateful(self) -> bool:
        """Whether a run depends on those before it."""
        return bool(self.writer.states)

    @property
    def arena_bytes(self) -> int:
        """Bytes of tensors between inputs and outputs, and of scratch memory."""
        return self.layout.size

    @property
    def state_bytes(self) -> int:
        """Bytes of what lasts from run to run."""
        return sum(array.nbytes for array in self.writer.states.values())

    @property
    def state_argument(self) -> list[str]:
        """The argument that names a state called ``state``; none where nothing lasts."""
        return ["&state"] if self.is_stateful else []

    @property
    def table_bytes(self) -> int:
        """Bytes of constants."""
        return self.writer.table_bytes


def compile_model(model: Model, options: CompileOptions, origin: str = "luciole") -> Program:
    """Compile a model's main graph; ``origin`` is the source that the files name.

    Raises UnsupportedError that lists operators without a C form, and LucioleError for options that
    do not suit the model.
    """
    network = _lowered(model.graph, options)
    _refuse_odd((*network.inputs, *network.outputs))
    input_names, output_names = _spoken(model)
    inputs = [end.called(input_names[place]) for place, end in enumerate(enter(network, options))]
    keep_fixed(network)
    outputs = [end.called(output_names[place]) for place, end in enumerate(leave(network, options))]
    pull_thresholds(network)
    join_sums(network)
    _refuse_odd([v for call in network.calls for v in (*call.reads, *call.writes)])
    calls, rooms = _with_scratch(network)
    layout = _layout(network, calls, rooms)
    constants, states = network.constants, network.states
    writer = Writer(options, inputs, outputs, calls, constants, layout, rooms, states, origin)
    return Program(options, inputs, outputs, calls, layout, writer)


def _spoken(model: Model) -> tuple[list[str], list[str]]:
    """Find the names of inputs and outputs in the main graph's only signature; empty ones without
    it.
    """
    graph, signatures = model.graph, [s for s in model.signatures if s.graph is model.graph]
    only = signatures[0] if len(signatures) == 1 else Signature("", graph)
    of_inputs, of_outputs = ({v: name for name, v in ends} for ends in (only.inputs, only.outputs))
    return [of_inputs.get(v, "") for v in graph.inputs], [
        of_outputs.get(v, "") for v in graph.outputs
    ]


def _lowered(graph: Graph, options: CompileOptions) -> Network:
    """Turn a graph into calls that agree on how many words lie side by side: if one knows less, all
    take one.
    """
    vectors, packs_weights = options.machine.vectors, not options.unpack
    network = lower(graph, vectors, packs_weights=packs_weights)
    agreed = {call.words for call in network.calls if call.words} <= {vectors.words}
    return network if agreed else lower(graph, packs_weights=packs_weights)


def _refuse_odd(values: Iterable[Value]) -> None:
    """Refuse tensors that C has no type or no size for. Raises UnsupportedError or LucioleError."""
    for value in values:
        if value.dtype not in CTYPES:
            raise UnsupportedError(f"tensor {value.name!r} is {value.dtype.name}: it has no C form")
        if element_count(value.dims) < 1:
            raise LucioleError(f"tensor {value.name!r} has no elements: C has no such arrays")


def _with_scratch(network: Network) -> tuple[list[CCall], Mapping[CCall, Value]]:
    """Give calls that need memory for themselves a tensor of it."""
    rooms = {
        call: Value("scratch", TensorType.UINT8, (call.scratch,))
        for call in network.calls
        if call.scratch
    }
    return network.calls, rooms


def _loops(calls: Sequence[CCall]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of the calls of each loop, inner ones first."""
    begun = []
    for number, call in enumerate(calls):
        if call.control in (Control.IF, Control.WHILE):
            begun.append((number, call.control))
        elif call.control == Control.END:
            begin, word = begun.pop()
            if word == Control.WHILE:
                yield begin, number


def _layout(network: Network, calls: Sequence[CCall], rooms: Mapping[CCall, Value]) -> Layout:
    """Lay out tensors that are neither given nor returned, and do not last."""
    outside = {*network.inputs, *network.outputs, *network.constants, *network.states}
    lives: dict[Value, Lifetime] = {}
    for number, call in enumerate(calls):
        for value in (*call.writes, *call.reads):
            if value not in outside:
                lives[value] = Lifetime(lives.get(value, Lifetime(number, 0)).first, number)
        if call in rooms:
            lives[rooms[call]] = Lifetime(number, number)
    for begin, end in _loops(calls):
        for value, life in lives.items():
            if life.first < begin <= life.last < end:
                lives[value] = Lifetime(life.first, end)
    sizes = {v: element_count(v.dims) * np.dtype(NUMPY[v.dtype]).itemsize for v in lives}
    return lay_out(lives, sizes, {}, ALIGNMENT)
