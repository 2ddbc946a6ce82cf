"""Circle and TFLite bytes to a model: one importer, because they are the same tables."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.importers.operators import import_operator
from luciole.ir import Buffer, Graph, Model, Signature, Value
from luciole.ir.errors import FormatError
from luciole.ir.verify import Finding, Severity, verify
from luciole.schema import opcodes, tables
from luciole.schema.enums import TensorType
from luciole.schema.reader import Bytes, read

_INLINE = 1
"""An offset above this says that a buffer's or an operator's data lies behind the tables."""

T = TypeVar("T")


def import_model(data: Bytes) -> tuple[Model, list[Finding]]:
    """A model from the bytes of a .circle or .tflite file, and what ``verify`` found.

    Constants stay views of ``data``. Raises FormatError where the file cannot be a graph at all.
    """
    root, unknown = read(data)
    importer = _Importer(root, np.frombuffer(data, np.uint8))
    model = importer.model()
    lost = [
        Finding(Severity.WARNING, "UNKNOWN_FIELD", "model", line) for line in dict.fromkeys(unknown)
    ]
    return model, lost + verify(model)


def from_bytes(data: Bytes) -> Model:
    """A model from bytes, refused with the first error when ``verify`` finds one."""
    return sound(*import_model(data))


def sound(model: Model, findings: Sequence[Finding]) -> Model:
    """The model itself. Raises FormatError with the first error among what was found."""
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if errors:
        more = f" (and {len(errors) - 1} more: see luciole verify)" if len(errors) > 1 else ""
        raise FormatError(f"{errors[0]}{more}")
    return model


def from_tables(root: tables.Model) -> Model:
    """A model from the tables of a file that has nothing behind them."""
    return _Importer(root, np.zeros(0, np.uint8)).model()


class _Importer:
    """One file being turned into a model."""

    def __init__(self, root: tables.Model, raw: NDArray[np.uint8]) -> None:
        self.root = root
        self.raw = raw
        self.codes = root.operator_codes or []
        self.numbers = [opcodes.resolve(code) for code in self.codes]

    def model(self) -> Model:
        """Everything, graph by graph."""
        root = self.root
        self.buffers = [self._buffer(i, b) for i, b in enumerate(root.buffers or [])]
        model = Model([], root.description, self.buffers)
        if not root.subgraphs:
            raise FormatError("the file has no graph")
        self.graphs = [model.add_graph(Graph(subgraph.name)) for subgraph in root.subgraphs]
        for index, (graph, subgraph) in enumerate(zip(self.graphs, root.subgraphs, strict=True)):
            self._graph(graph, subgraph, f"subgraph {index}")
        for entry in root.metadata or []:
            model.metadata.append(
                (entry.name or "", self._pick(self.buffers, entry.buffer, "metadata", "buffer"))
            )
        for number in _ints(root.metadata_buffer):
            model.metadata_buffers.append(
                self._pick(self.buffers, number, "metadata_buffer", "buffer")
            )
        model.signatures = [self._signature(model, s) for s in root.signature_defs or []]
        return model

    def _buffer(self, index: int, buffer: tables.Buffer) -> Buffer:
        if buffer.offset <= _INLINE or (buffer.data is not None and len(buffer.data)):
            return Buffer(buffer.data)
        return Buffer(self._behind_tables(buffer.offset, buffer.size, f"buffer {index}"))

    def _behind_tables(self, offset: int, size: int, what: str) -> NDArray[np.uint8]:
        """Bytes that lie in the file, but outside of the tables."""
        if offset + size > len(self.raw):
            raise FormatError(f"{what} ends at byte {offset + size}, the file has {len(self.raw)}")
        return self.raw[offset : offset + size]

    @staticmethod
    def _pick(items: Sequence[T], index: int, where: str, what: str) -> T:
        if not 0 <= index < len(items):
            raise FormatError(f"{where}: {what} {index} does not exist, there are {len(items)}")
        return items[index]

    def _graph(self, graph: Graph, table: tables.SubGraph, where: str) -> None:
        for index, tensor in enumerate(table.tensors or []):
            graph.add_value(self._value(tensor, f"{where}, tensor {index}"))
        graph.debug_metadata_index = table.debug_metadata_index
        graph.inputs = self._values(graph, table.inputs, f"{where}, inputs")
        graph.outputs = self._values(graph, table.outputs, f"{where}, outputs")
        for index, operator in enumerate(table.operators or []):
            self._operator(graph, operator, f"{where}, operator {index}")

    def _values(self, graph: Graph, numbers: NDArray[np.int32] | None, where: str) -> list[Value]:
        return [self._pick(graph.values, n, where, "tensor") for n in _ints(numbers)]

    def _value(self, tensor: tables.Tensor, where: str) -> Value:
        dtype = tensor.type
        if not isinstance(dtype, IntEnum):
            raise FormatError(f"{where}: element type {dtype} is not known")
        value = Value(tensor.name or "", TensorType(dtype), self._extents(tensor, where))
        value.buffer = (
            self._pick(self.buffers, tensor.buffer, where, "buffer") if tensor.buffer else None
        )
        if tensor.shape_signature is not None and len(tensor.shape_signature):
            value.shape_signature = self._signature_shape(tensor, where)
        value.quantization, value.sparsity = tensor.quantization, tensor.sparsity
        value.is_variable, value.has_rank = tensor.is_variable, tensor.has_rank
        value.variant_tensors, value.compression_type = (
            tensor.variant_tensors,
            tensor.compression_type,
        )
        return value

    @staticmethod
    def _extents(tensor: tables.Tensor, where: str) -> tuple[int, ...]:
        extents = tuple(_ints(tensor.shape))
        if any(n < 0 for n in extents):
            raise FormatError(
                f"{where} {tensor.name!r}: shape {list(extents)} has a negative extent"
            )
        return extents

    @staticmethod
    def _signature_shape(tensor: tables.Tensor, where: str) -> tuple[int, ...]:
        signature, extents = tuple(_ints(tensor.shape_signature)), tuple(_ints(tensor.shape))
        fits = len(signature) == len(extents)
        if not fits or any(
            s < -1 or (s >= 0 and s != n) for s, n in zip(signature, extents, strict=False)
        ):
            raise FormatError(
                f"{where} {tensor.name!r}: shape signature {list(signature)} "
                f"contradicts shape {list(extents)}"
            )
        return signature

    def _operator(self, graph: Graph, operator: tables.Operator, where: str) -> None:
        code = self._pick(self.codes, operator.opcode_index, where, "operator code")
        inputs = [
            None if n == -1 else self._pick(graph.values, n, where, "tensor")
            for n in _ints(operator.inputs)
        ]
        results = self._values(graph, operator.outputs, where)
        seen: set[Value] = set()
        for value in results:
            if value.producer is not None or value in seen:
                raise FormatError(f"{where}: tensor {value.name!r} is computed twice")
            seen.add(value)
        if operator.large_custom_options_offset > _INLINE:
            operator.custom_options = self._behind_tables(
                operator.large_custom_options_offset,
                operator.large_custom_options_size,
                f"{where}: custom options",
            )
        number = self.numbers[operator.opcode_index]
        op = import_operator(operator, number, code, inputs, self.graphs)
        op.version = code.version
        op.has_options = (
            operator.builtin_options is not None or operator.builtin_options_2 is not None
        )
        op.intermediates = tuple(self._values(graph, operator.intermediates, where))
        if operator.mutating_variable_inputs is not None:
            op.mutating_variable_inputs = tuple(bool(b) for b in operator.mutating_variable_inputs)
        op.debug_metadata_index = operator.debug_metadata_index
        graph.append(op, results=results)

    def _signature(self, model: Model, table: tables.SignatureDef) -> Signature:
        where = f"signature {table.signature_key!r}"
        graph = self._pick(model.graphs, table.subgraph_index, where, "subgraph")
        sides = [
            [
                (m.name or "", self._pick(graph.values, m.tensor_index, where, "tensor"))
                for m in side or []
            ]
            for side in (table.inputs, table.outputs)
        ]
        return Signature(table.signature_key or "", graph, *sides)


def _ints(numbers: NDArray[np.int32] | None) -> list[int]:
    return [] if numbers is None else [int(n) for n in numbers]
