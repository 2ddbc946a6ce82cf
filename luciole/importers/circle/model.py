"""Circle and TFLite bytes to a model: one importer, because they are the same tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.importers.circle.operators import import_operator
from luciole.importers.imported import Imported
from luciole.ir import Buffer, Graph, Model, Signature, Value
from luciole.ir.analysis.bias_steps import complete
from luciole.ir.blockwise import blocks_of
from luciole.ir.findings import Finding, Severity
from luciole.ir.rewriting.moved import rescale_moved
from luciole.ir.verify import verify
from luciole.schema import opcodes, tables
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import TensorType
from luciole.schema.reader import Bytes, dialect_of, read_damaged, shared_room

_INLINE = 1
"""An offset above this says that a buffer's or an operator's data lies behind the tables."""

_OF_LUCI = "nnpackage"
"""The description of every file that luci, Samsung ONE's compiler, writes."""

_ABSENT = -1
_NO_CODE = -1
"""The number of an operator whose code does not exist: no operator has it."""

_KNOWN_TYPES = frozenset(TensorType)
_UNKNOWN_TYPE = TensorType.VARIANT
"""Element type in place of one that is not known: its elements have no size."""

T = TypeVar("T")


def import_model(data: Bytes) -> tuple[Model, list[Finding]]:
    """Import the bytes of a .circle or .tflite file, and list everything that is wrong with it:
    where its bytes do not hold, where tables speak of what is not there, and what ``verify`` found.

    What is damaged is left out. Constants stay views of ``data``. Raises FormatError where the
    bytes are no such file at all.
    """
    contents = read_damaged(data)
    importer = _Importer(contents.root, np.frombuffer(data, np.uint8))
    model = importer.model()
    damaged = [
        Finding(Severity.ERROR, "BYTES", fault.place or "model", fault.sentence)
        for fault in contents.faults
    ]
    lost = [Finding(Severity.WARNING, "UNKNOWN_FIELD", "model", line) for line in contents.unknown]
    return model, _with_scales_of_one(model, damaged + importer.findings + lost + verify(model))


def _with_scales_of_one(model: Model, findings: list[Finding]) -> list[Finding]:
    """Bring integers that an operator moves to another scale there, in a file of luci's, whose
    quantizer gives each tensor its own, and warn of it; in other files that is a fault.
    """
    errors = [finding for finding in findings if finding.severity == Severity.ERROR]
    if model.description != _OF_LUCI or not errors or any(e.code != "GRIDS" for e in errors):
        return findings
    for graph in model.graphs:
        rescale_moved(graph, only_copied=True)
    left = [finding for finding in verify(model) if finding.severity == Severity.ERROR]
    return [_brought(one) if one in errors else one for one in findings] + left


def _brought(finding: Finding) -> Finding:
    tensors, _, _ = finding.sentence.partition(" must have one scale")
    sentence = f"{tensors} have scales of their own: a QUANTIZE brings integers to the second one"
    return replace(finding, severity=Severity.WARNING, sentence=sentence)


def import_file(data: Bytes) -> Imported:
    """Import the bytes of a .circle or .tflite file as ``import_model`` does, with its dialect."""
    return Imported(*import_model(data), dialect_of(data) or CIRCLE)


def from_bytes(data: Bytes) -> Model:
    """Import bytes. Raises FormatError with the first error when one was found."""
    return Imported(*import_model(data)).sound()


def from_tables(root: tables.Model) -> Model:
    """Import the tables of a file that has nothing behind them. Raises FormatError where they speak
    of what is not there.
    """
    importer = _Importer(root, np.zeros(0, np.uint8))
    return Imported(importer.model(), importer.findings).sound()


class _Importer:
    """One file being turned into a model. What cannot be part of one becomes a finding and is left
    out; everything else keeps its number.
    """

    def __init__(self, root: tables.Model, raw: NDArray[np.uint8]) -> None:
        self.root = root
        self.raw = raw
        self.findings: list[Finding] = []
        self.room = shared_room(len(raw))
        self.codes = root.operator_codes or []
        self.numbers = [opcodes.resolve(code) for code in self.codes]

    def model(self) -> Model:
        """Import everything, graph by graph."""
        root = self.root
        self.buffers = [self._buffer(i, b) for i, b in enumerate(root.buffers or [])]
        model = Model([], root.description, self.buffers)
        subgraphs = root.subgraphs or []
        self.graphs = [model.add_graph(Graph(subgraph.name)) for subgraph in subgraphs]
        for index, (graph, subgraph) in enumerate(zip(self.graphs, subgraphs, strict=True)):
            self._graph(graph, subgraph, f"subgraphs[{index}]")
        for index, entry in enumerate(root.metadata or []):
            buffer = self._pick(self.buffers, entry.buffer, f"metadata[{index}]", "buffer")
            if buffer is not None:
                model.metadata.append((entry.name or "", buffer))
        model.metadata_buffers = self._picked(
            self.buffers, root.metadata_buffer, "metadata_buffer", "buffer"
        )
        signatures = (self._signature(i, s) for i, s in enumerate(root.signature_defs or []))
        model.signatures = [signature for signature in signatures if signature is not None]
        return model

    def _error(self, code: str, path: str, sentence: str) -> None:
        self.findings.append(Finding(Severity.ERROR, code, path, sentence))

    def _buffer(self, index: int, buffer: tables.Buffer) -> Buffer:
        if buffer.offset <= _INLINE or (buffer.data is not None and len(buffer.data)):
            return Buffer(buffer.data)
        return Buffer(self._behind_tables(buffer.offset, buffer.size, f"buffers[{index}]"))

    def _behind_tables(self, offset: int, size: int, path: str) -> NDArray[np.uint8] | None:
        """Take bytes that lie in the file, but outside of the tables."""
        if offset + size > len(self.raw):
            sentence = f"its bytes end at byte {offset + size}, the file has {len(self.raw)}"
            self._error("BYTES", path, sentence)
            return None
        return self.raw[offset : offset + size]

    def _large_options(self, operator: tables.Operator, path: str) -> NDArray[np.uint8] | None:
        """Read custom options behind the tables. They are copied, so operators may share
        only some.
        """
        offset, size = operator.large_custom_options_offset, operator.large_custom_options_size
        if size > self.room:
            sentence = f"custom options come to more bytes than a file of {len(self.raw)} can hold"
            self._error("BYTES", path, sentence)
            return None
        self.room -= size
        return self._behind_tables(offset, size, path)

    def _pick(self, items: Sequence[T], index: int, path: str, what: str) -> T | None:
        """Find the item with a number of the file, None where there is none."""
        picked = self._pick_all(items, [index], path, what)
        return picked[0]

    def _picked(
        self, items: Sequence[T], numbers: NDArray[np.int32] | None, path: str, what: str
    ) -> list[T]:
        """Find the items with several numbers, without numbers that have none."""
        return [x for x in self._pick_all(items, _ints(numbers), path, what) if x is not None]

    def _pick_all(
        self, items: Sequence[T], numbers: Sequence[int], path: str, what: str
    ) -> list[T | None]:
        wrong = [n for n in numbers if not 0 <= n < len(items)]
        if wrong:
            others = f", nor do {len(wrong) - 1} more" if len(wrong) > 1 else ""
            sentence = f"{what} {wrong[0]} does not exist{others}: there are {len(items)}"
            self._error("REFERENCE", path, sentence)
        return [items[n] if 0 <= n < len(items) else None for n in numbers]

    def _graph(self, graph: Graph, table: tables.SubGraph, path: str) -> None:
        for index, tensor in enumerate(table.tensors or []):
            graph.add_value(self._value(tensor, f"{path}.tensors[{index}] {tensor.name or ''!r}"))
        for value in graph.values:
            self._name_blocks(graph, value)
        graph.debug_metadata_index = table.debug_metadata_index
        graph.inputs = self._picked(graph.values, table.inputs, f"{path}.inputs", "tensor")
        graph.outputs = self._picked(graph.values, table.outputs, f"{path}.outputs", "tensor")
        for index, operator in enumerate(table.operators or []):
            self._operator(graph, operator, f"{path}.operators[{index}]")
        complete(graph)

    def _value(self, tensor: tables.Tensor, path: str) -> Value:
        dtype = tensor.type
        if dtype not in _KNOWN_TYPES:  # a file may have any number
            self._error("ELEMENT_TYPE", path, f"element type {dtype} is not known")
            dtype = _UNKNOWN_TYPE
        value = Value(tensor.name or "", TensorType(dtype), tuple(_ints(tensor.shape)))
        if tensor.buffer:
            value.buffer = self._pick(self.buffers, tensor.buffer, path, "buffer")
        if tensor.shape_signature is not None and len(tensor.shape_signature):
            value.shape_signature = tuple(_ints(tensor.shape_signature))
        value.quantization, value.sparsity = tensor.quantization, tensor.sparsity
        value.is_variable, value.has_rank = tensor.is_variable, tensor.has_rank
        value.variant_tensors, value.compression_type = (
            tensor.variant_tensors,
            tensor.compression_type,
        )
        return value

    def _name_blocks(self, graph: Graph, value: Value) -> None:
        """Find the tensors that a blockwise quantization speaks of; ``verify`` says which are not
        there.
        """
        details, values = blocks_of(value), graph.values
        if details is not None:
            numbers = (details.scales, details.zero_points)
            scales, points = (values[n] if 0 <= n < len(values) else None for n in numbers)
            value.block_tensors = scales, points

    def _operator(self, graph: Graph, operator: tables.Operator, path: str) -> None:
        code = self._pick(self.codes, operator.opcode_index, path, "operator code")
        number = _NO_CODE if code is None else self.numbers[operator.opcode_index]
        if operator.large_custom_options_offset > _INLINE:
            operator.custom_options = self._large_options(operator, f"{path}.custom_options")
        inputs = self._operands(graph, operator, path)
        op = import_operator(operator, number, code or tables.OperatorCode(), inputs, self.graphs)
        op.version = 1 if code is None else code.version
        op.has_options = (
            operator.builtin_options is not None or operator.builtin_options_2 is not None
        )
        op.intermediates = tuple(
            self._picked(graph.values, operator.intermediates, path, "intermediate tensor")
        )
        if operator.mutating_variable_inputs is not None:
            op.mutating_variable_inputs = tuple(bool(b) for b in operator.mutating_variable_inputs)
        op.debug_metadata_index = operator.debug_metadata_index
        graph.append(op, results=self._results(graph, operator, path))

    def _operands(self, graph: Graph, operator: tables.Operator, path: str) -> list[Value | None]:
        """List an operator's operands; -1 says that one is absent."""
        numbers = _ints(operator.inputs)
        present = [n for n in numbers if n != _ABSENT]
        operands = iter(self._pick_all(graph.values, present, path, "tensor"))
        return [None if n == _ABSENT else next(operands) for n in numbers]

    def _results(self, graph: Graph, operator: tables.Operator, path: str) -> list[Value]:
        """List an operator's results without tensors that another one computes."""
        results: dict[Value, None] = {}
        for value in self._picked(graph.values, operator.outputs, path, "tensor"):
            if value.producer is not None or value in results:
                self._error("COMPUTED_TWICE", path, f"tensor {value.name!r} is computed twice")
                continue
            results[value] = None
        return list(results)

    def _signature(self, index: int, table: tables.SignatureDef) -> Signature | None:
        path = f"signature_defs[{index}] {table.signature_key!r}"
        graph = self._pick(self.graphs, table.subgraph_index, path, "subgraph")
        if graph is None:
            return None
        sides = [
            [
                (m.name or "", value)
                for m in side or []
                if (value := self._pick(graph.values, m.tensor_index, path, "tensor")) is not None
            ]
            for side in (table.inputs, table.outputs)
        ]
        return Signature(table.signature_key or "", graph, *sides)


def _ints(numbers: NDArray[np.int32] | None) -> list[int]:
    return [] if numbers is None else numbers.tolist()
