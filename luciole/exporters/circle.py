"""Models to circle and TFLite bytes: one exporter, because they are the same tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from luciole.ir import Buffer, Graph, Model, Op, Signature, UnknownOp, Value
from luciole.schema import opcodes, tables
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.enums import BuiltinOptions
from luciole.schema.table import TABLES, Table
from luciole.schema.writer import write

Code = tuple[int, str | None, int]
"""Builtin number, custom code, version."""


def export_model(model: Model, dialect: Dialect) -> bytes:
    """The bytes of a model file. Raises FormatError that names what the format cannot hold."""
    return write(to_tables(model, dialect), dialect)


def to_tables(model: Model, dialect: Dialect = CIRCLE) -> tables.Model:
    """The tables of a model's file."""
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
        self.codes: dict[Code, int] = {}

    def model(self) -> tables.Model:
        """Everything; buffers last, because writing the rest finds new ones."""
        source = self.source
        graphs = [self._graph(graph) for graph in source.graphs]
        metadata = [tables.Metadata(name=n, buffer=self._place(b)) for n, b in source.metadata]
        loose = [self._place(b) for b in source.metadata_buffers]
        signatures = [self._signature(s) for s in source.signatures]
        return tables.Model(
            version=self.dialect.model_version,
            operator_codes=[
                opcodes.encode(n, v, custom, self.dialect) for n, custom, v in self.codes
            ],
            subgraphs=graphs,
            description=source.description,
            buffers=[tables.Buffer(data=b.data) for b in self.buffers],
            metadata_buffer=np.array(loose, np.int32) if loose else None,
            metadata=metadata or None,
            signature_defs=signatures or None,
        )

    def _place(self, buffer: Buffer | None) -> int:
        if buffer is None:
            return 0
        if id(buffer) not in self.places:
            self.places[id(buffer)] = len(self.buffers)
            self.buffers.append(buffer)
        return self.places[id(buffer)]

    def _graph(self, graph: Graph) -> tables.SubGraph:
        index = {value: i for i, value in enumerate(graph.values)}
        return tables.SubGraph(
            tensors=[self._tensor(value) for value in graph.values],
            inputs=_ints(index[v] for v in graph.inputs),
            outputs=_ints(index[v] for v in graph.outputs),
            operators=[self._operator(op, index) for op in graph.ops],
            name=graph.name,
            debug_metadata_index=graph.debug_metadata_index,
        )

    def _tensor(self, value: Value) -> tables.Tensor:
        signature = value.shape_signature
        return tables.Tensor(
            shape=_ints(value.dims),
            type=value.dtype,
            buffer=self._place(value.buffer),
            name=value.name,
            quantization=value.quantization,
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
            **_options(op),
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


def _options(op: Op) -> dict[str, Any]:
    """The fields of an Operator table that say how it is configured."""
    if isinstance(op, UnknownOp):
        return {
            "builtin_options": op.options_table,
            "builtin_options_2": op.options_2,
            "custom_options": op.custom_options,
            "custom_options_format": op.custom_options_format,
        }
    plain = all(getattr(op, f.name) == f.default for f in op.attr_fields())
    if op.options is None or (plain and not op.has_options):
        return {}
    fields = {f.schema_name: _stored(getattr(op, f.name)) for f in op.attr_fields()}
    table: Table = TABLES[op.options](**fields)
    union = "builtin_options" if op.options in BuiltinOptions.__members__ else "builtin_options_2"
    if op.custom_code is None:
        return {union: table}
    return {union: table, "custom_options": _map(fields)}


def _map(fields: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The same options as a flat FlexBuffer map, which every other tool can show."""
    plain = {k: v if isinstance(v, float) else int(v) for k, v in fields.items()}
    return np.frombuffer(bytes(flexbuffers.Dumps(plain)), np.uint8)


def _stored(value: Any) -> Any:
    return _ints(value) if isinstance(value, tuple) else value


def _ints(numbers: Any) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.fromiter(numbers, np.int32)
