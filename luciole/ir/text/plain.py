"""A model as plain lists and dictionaries that every JSON reader takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from luciole.ir.errors import GraphError
from luciole.ir.findings import Finding
from luciole.ir.graph import Graph, Model, Signature
from luciole.ir.op import Op
from luciole.ir.quantization import vectors
from luciole.ir.strings import strings_of
from luciole.ir.text.common import (
    Code,
    Numbering,
    code_name,
    code_of,
    deprecated_code,
    index_vector,
    utf8,
)
from luciole.ir.text.metadata import read_table
from luciole.ir.text.options import options_by_name
from luciole.ir.value import Value, element_count
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.table import Table
from luciole.schema.tables import QuantizationParameters, SparsityParameters

SCHEMA_VERSION = 1
"""Rises when a key changes its meaning or goes away; new keys may come at any time."""

MOST_VALUES = 16
"""Elements of a constant up to which its values are given."""

MOST_BYTES = 64
"""Bytes of unreadable custom options that are given."""


def describe(
    model: Model,
    path: str | None = None,
    dialect: Dialect = CIRCLE,
    findings: Sequence[Finding] | None = None,
) -> dict[str, Any]:
    """Return everything that ``dump`` prints, as data for JSON. ``findings`` are the faults of the
    model; None where nobody looked.

    ``json.dumps(..., allow_nan=False)`` takes it: numbers that are not finite are the texts "NaN",
    "Infinity" and "-Infinity", bytes are hexadecimal, enum members are names, complex numbers are
    pairs. Bytes of a name that are not UTF-8 are written ``\\xff``.
    """
    numbers = Numbering(model)
    return {
        "schema_version": SCHEMA_VERSION,
        "file": jsonable(path),
        "format": dialect.name,
        "description": jsonable(model.description),
        "operator_codes": [_code(index, key) for key, index in numbers.codes.items()],
        "buffers": [len(buffer) for buffer in numbers.buffers],
        "metadata": _metadata(model, numbers),
        "signatures": [_signature(signature, numbers) for signature in model.signatures],
        "subgraphs": [_graph(graph, numbers) for graph in model.graphs],
        "findings": None if findings is None else [jsonable(f.as_json()) for f in findings],
    }


def _metadata(model: Model, numbers: Numbering) -> list[dict[str, Any]]:
    """List the entries; the table of a buffer that several share is given once."""
    entries: list[dict[str, Any]] = []
    shown: set[int] = set()
    for name, buffer in model.metadata:
        table = None if id(buffer) in shown else jsonable(read_table(name, buffer))
        shown.add(id(buffer))
        entries.append({"name": utf8(name), "buffer": numbers.buffer(buffer), "table": table})
    return entries


def jsonable(value: Any, numbers: Numbering | None = None) -> Any:
    """Turn a value into JSON's own types. A graph becomes its number."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _real(float(value))
    if isinstance(value, complex):
        return [_real(value.real), _real(value.imag)]
    if isinstance(value, bytes):
        return {"bytes": len(value), "hex": value[:MOST_BYTES].hex()}
    if isinstance(value, Graph):
        return None if numbers is None else numbers.graph(value)
    if isinstance(value, dict):
        return {utf8(str(k)): jsonable(v, numbers) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist(), numbers) if value.size else []  # [2^30,0] has many rows
    return [jsonable(v, numbers) for v in value]


def _real(number: float) -> float | str:
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _code(index: int, code: Code) -> dict[str, Any]:
    builtin, custom, version = code
    return {
        "index": index,
        "name": code_name(builtin, custom),
        "code": builtin,
        "deprecated_code": deprecated_code(builtin),
        "custom_code": jsonable(custom),
        "version": version,
    }


def _signature(signature: Signature, numbers: Numbering) -> dict[str, Any]:
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    return {
        "key": utf8(signature.key),
        "subgraph": numbers.graph(signature.graph),
        **{
            side: [{"name": utf8(name), "tensor": numbers.tensor(value)} for name, value in pairs]
            for side, pairs in sides.items()
        },
    }


def _graph(graph: Graph, numbers: Numbering) -> dict[str, Any]:
    return {
        "name": jsonable(graph.name),
        "inputs": [numbers.tensor(value) for value in graph.inputs],
        "outputs": [numbers.tensor(value) for value in graph.outputs],
        "tensors": [_tensor(value, numbers) for value in graph.values],
        "operators": [_operator(index, op, numbers) for index, op in enumerate(graph.ops)],
    }


def _tensor(value: Value, numbers: Numbering) -> dict[str, Any]:
    return {
        "index": numbers.tensor(value),
        "name": utf8(value.name),
        "dtype": value.dtype.name,
        "shape": list(value.dims),
        "shape_signature": jsonable(value.shape_signature),
        "buffer": numbers.buffer(value.buffer),
        "bytes": 0 if value.buffer is None else len(value.buffer),
        "is_variable": value.is_variable,
        "quantization": _quantization(value.quantization),
        "sparsity": _sparsity(value.sparsity),
        "values": _values(value),
    }


def _values(value: Value) -> Any:
    """Read the contents of a small constant, nested like its shape, or None."""
    if element_count(value.dims) > MOST_VALUES:
        return None
    try:
        texts = strings_of(value)
        return jsonable(value.data if texts is None else texts)
    except (GraphError, ValueError):  # the buffer does not fit the shape: ``verify`` says so
        return None


def _quantization(table: QuantizationParameters | None) -> dict[str, Any] | None:
    if table is None:
        return None
    return {
        **{name: jsonable(vector) for name, vector in vectors(table).items()},
        "quantized_dimension": table.quantized_dimension,
        "details": _record(table.details),
    }


def _record(table: Table | None) -> dict[str, Any] | None:
    """List a table's fields, and under ``kind`` which table it is."""
    if table is None:
        return None
    fields = {field.name: jsonable(getattr(table, field.name)) for field in table.fields}
    return {"kind": type(table).__name__, **fields}


def _sparsity(table: SparsityParameters | None) -> dict[str, Any] | None:
    """Describe the layout of a sparse tensor; of the index vectors only kind and length."""
    if table is None:
        return None
    dimensions = [
        {
            "format": jsonable(dimension.format),
            "dense_size": dimension.dense_size,
            "array_segments": _index_vector(dimension.array_segments),
            "array_indices": _index_vector(dimension.array_indices),
        }
        for dimension in table.dim_metadata or []
    ]
    return {
        "traversal_order": jsonable(table.traversal_order),
        "block_map": jsonable(table.block_map),
        "dim_metadata": dimensions,
    }


def _index_vector(union: Table | None) -> dict[str, Any] | None:
    if union is None:
        return None
    numbers = index_vector(union)
    return {"kind": type(union).__name__, "length": 0 if numbers is None else len(numbers)}


def _operator(index: int, op: Op, numbers: Numbering) -> dict[str, Any]:
    return {
        "index": index,
        "kind": utf8(op.kind),
        "code": numbers.codes[code_of(op)],
        "version": op.version,
        "options": jsonable(options_by_name(op), numbers),
        "inputs": [numbers.tensor(value) for value in op.operands],
        "outputs": [numbers.tensor(value) for value in op.results],
        "intermediates": [numbers.tensor(value) for value in op.intermediates],
    }
