"""Models to circle and TFLite bytes: one exporter, because they are the same tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from enum import IntEnum
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from luciole.ir import Buffer, Graph, Model, Op, Signature, UnknownOp, Value
from luciole.ir.analysis.bias_steps import shortened
from luciole.ir.blockwise import blocks_of
from luciole.ir.errors import FormatError, UnsupportedError
from luciole.ir.fields import Field, for_graphs
from luciole.ir.text.flexbuffer import read_map
from luciole.ir.value import map_blocks
from luciole.schema import large, opcodes, tables
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.enums import BuiltinOperator, BuiltinOptions
from luciole.schema.table import TABLES, Table

Code = tuple[int, str | None, int]
"""Builtin number, custom code, version."""


def export_model(
    model: Model, dialect: Dialect, use_buffer_offset: bool = False
) -> Iterator[memoryview]:
    """Give a model file's bytes in parts. Raises UnsupportedError for operators that the format has
    not, FormatError that names what else it cannot hold.
    """
    behind = use_buffer_offset or model.use_buffer_offset
    return large.parts(to_tables(model, dialect), dialect, behind)


def to_tables(model: Model, dialect: Dialect = CIRCLE) -> tables.Model:
    """Make the tables of a model's file."""
    return _Exporter(model, dialect).model()


class _Exporter:
    """One model being turned into tables; tensors, buffers and operator codes keep the model's
    order.
    """

    def __init__(self, model: Model, dialect: Dialect) -> None:
        self.source = model
        self.dialect = dialect
        self.buffers = list(model.buffers) or [Buffer()]
        self.places = {id(b): i for i, b in enumerate(self.buffers)}
        self.graphs = {id(graph): i for i, graph in enumerate(model.graphs)}
        self.codes: dict[Code, int] = {}

    def model(self) -> tables.Model:
        """Write everything; buffers last, because writing the rest finds new ones."""
        source = self.source
        graphs = [self._graph(graph) for graph in source.graphs]
        metadata = [tables.Metadata(name=n, buffer=self._place(b)) for n, b in source.metadata]
        loose = [self._place(b) for b in source.metadata_buffers]
        signatures = [self._signature(s) for s in source.signatures]
        return tables.Model(
            version=self.dialect.model_version,
            operator_codes=self._operator_codes(),
            subgraphs=graphs,
            description=source.description,
            buffers=[tables.Buffer(data=b.data) for b in self.buffers],
            metadata_buffer=np.array(loose, np.int32) if loose else None,
            metadata=metadata or None,
            signature_defs=signatures or None,
        )

    def _operator_codes(self) -> list[tables.OperatorCode]:
        """List the codes of all operators. Raises UnsupportedError that names the operators that
        the format lacks.
        """
        codes, missing = [], []
        for number, custom, version in self.codes:
            try:
                codes.append(opcodes.encode(number, version, custom, self.dialect))
            except FormatError as error:
                missing.append(str(error))
        if missing:
            raise UnsupportedError("; ".join(missing), missing)
        return codes

    def _place(self, buffer: Buffer | None) -> int:
        if buffer is None:
            return 0
        if id(buffer) not in self.places:
            self.places[id(buffer)] = len(self.buffers)
            self.buffers.append(buffer)
        return self.places[id(buffer)]

    def _graph(self, graph: Graph) -> tables.SubGraph:
        index = {value: i for i, value in enumerate(graph.values)}
        short = shortened(graph)
        return tables.SubGraph(
            tensors=[self._tensor(value, index, short) for value in graph.values],
            inputs=_ints(index[v] for v in graph.inputs),
            outputs=_ints(index[v] for v in graph.outputs),
            operators=[self._operator(op, index) for op in graph.ops],
            name=graph.name,
            debug_metadata_index=graph.debug_metadata_index,
        )

    def _tensor(
        self,
        value: Value,
        index: dict[Value, int],
        short: Mapping[Value, tables.QuantizationParameters | None],
    ) -> tables.Tensor:
        signature = value.shape_signature
        return tables.Tensor(
            shape=_ints(value.dims),
            type=value.dtype,
            buffer=self._place(value.buffer),
            name=value.name,
            quantization=short[value] if value in short else _quantization(value, index),
            is_variable=value.is_variable,
            sparsity=value.sparsity,
            shape_signature=None if signature is None else _ints(signature),
            has_rank=value.has_rank,
            variant_tensors=value.variant_tensors,
            compression_type=value.compression_type,
        )

    def _operator(self, op: Op, index: dict[Value, int]) -> tables.Operator:
        mutating = (
            np.array(op.mutating_variable_inputs, np.bool_) if op.mutating_variable_inputs else None
        )
        return tables.Operator(
            opcode_index=self._code(op),
            inputs=_ints(-1 if v is None else index[v] for v in op.operands),
            outputs=_ints(index[v] for v in op.results),
            mutating_variable_inputs=mutating,
            intermediates=_ints(index[v] for v in op.intermediates) if op.intermediates else None,
            debug_metadata_index=op.debug_metadata_index,
            **_options(op, self.graphs),
        )

    def _code(self, op: Op) -> int:
        if isinstance(op, UnknownOp):
            key: Code = (op.number, op.custom, op.version)
        else:
            key = (int(op.code), op.custom_code, op.version)
        return self.codes.setdefault(key, len(self.codes))

    def _signature(self, signature: Signature) -> tables.SignatureDef:
        index = {value: i for i, value in enumerate(signature.graph.values)}
        inputs, outputs = (
            [tables.TensorMap(name=n, tensor_index=index[v]) for n, v in side]
            for side in (signature.inputs, signature.outputs)
        )
        return tables.SignatureDef(
            inputs=inputs,
            outputs=outputs,
            signature_key=signature.key,
            subgraph_index=self.source.graphs.index(signature.graph),
        )


def _options(op: Op, graphs: Mapping[int, int]) -> dict[str, Any]:
    """Fill the fields of an Operator table that say how it is configured; ``graphs`` numbers the
    model's by identity.
    """
    if isinstance(op, UnknownOp):
        return {
            "builtin_options": op.options_table,
            "builtin_options_2": op.options_2,
            "custom_options": op.custom_options,
            "custom_options_format": op.custom_options_format,
        }
    if op.code == BuiltinOperator.CUSTOM:
        return _custom_options(op)
    if op.options is None:
        return {}
    fields = {f.schema_name: _stored(op, f, graphs) for f in op.attr_fields()}
    defaults = {f.schema_name: _default(f) for f in op.attr_fields()}
    table: Table = TABLES[op.options](**fields)
    if not op.has_options and all(np.array_equal(v, defaults[k]) for k, v in fields.items()):
        return {}
    union = "builtin_options" if op.options in BuiltinOptions.__members__ else "builtin_options_2"
    if op.custom_code is None:
        return {union: table}
    return {union: table, "custom_options": _map(fields)}


def _custom_options(op: Op) -> dict[str, Any]:
    """Return the file's own bytes while they agree with the attributes, else write all entries
    anew.
    """
    options = op.file_options
    if options is not None and options.attributes == op.attributes():
        return {"custom_options": np.frombuffer(options.raw, np.uint8)}
    plain = all(getattr(op, f.name) == f.default for f in op.attr_fields())
    if options is None and plain and not op.has_options:
        return {}
    if op.packed:
        return {"custom_options": _struct(op, b"" if options is None else options.raw)}
    others = (read_map(options.raw) if options is not None else None) or {}
    own = {f.schema_name: getattr(op, f.name) for f in op.attr_fields()}
    return {"custom_options": _map(others | own)}


def _struct(op: Op, raw: bytes) -> NDArray[np.uint8]:
    """Write options as a C struct, with the bytes that a file has behind them."""
    own = np.array(list(op.attributes().values()), "<i4").tobytes()
    return np.frombuffer(own + raw[len(own) :], np.uint8)


def _map(fields: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Write options as a flat FlexBuffer map, which every other tool can show."""
    plain = {k: int(v) if isinstance(v, IntEnum) else v for k, v in fields.items()}
    return np.frombuffer(bytes(flexbuffers.Dumps(plain)), np.uint8)


def _stored(op: Op, field: Field, graphs: Mapping[int, int]) -> Any:
    value = getattr(op, field.name)
    if not field.is_graph:
        return _plain(value)
    called = value if isinstance(value, tuple) else (value,)
    if not all(id(graph) in graphs for graph in called):
        raise FormatError(f"{op}: {field.name} is no graph of the model")
    return _plain(for_graphs(value, lambda graph: graphs[id(graph)]))


def _default(field: Field) -> Any:
    return 0 if field.is_graph and field.default is None else _plain(field.default)


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    whole = all(isinstance(n, int) for n in value)
    return np.fromiter(value, np.int64) if whole else np.array(value, np.float32)


def _quantization(value: Value, index: dict[Value, int]) -> tables.QuantizationParameters | None:
    """Return a tensor's quantization, which names the tensors of its blocks by their present
    numbers.
    """
    table, details = value.quantization, blocks_of(value)
    if table is None or details is None:
        return table
    scales, points = map_blocks(value.block_tensors, index.get)
    blocks = copy(details)
    blocks.scales = details.scales if scales is None else scales
    blocks.zero_points = details.zero_points if points is None else points
    renumbered = copy(table)
    renumbered.details = blocks
    return renumbered


def _ints(numbers: Any) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.fromiter(numbers, np.int32)
