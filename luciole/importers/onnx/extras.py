"""Read properties that ONNX has no place for, as luciole writes them into a file's metadata."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from luciole.ir import Buffer, Graph, Model, Signature, Value
from luciole.ir.errors import FormatError
from luciole.schema import onnx_dialect as dialect

if TYPE_CHECKING:
    from onnx import ModelProto


def restore(model: Model, proto: ModelProto) -> None:
    """Give a model the description, metadata and signatures that luciole wrote into the file.

    Raises FormatError for entries of these names that say something else.
    """
    if proto.producer_name == dialect.PRODUCER:
        model.description = proto.doc_string or None
    for entry in proto.metadata_props:
        if entry.key == dialect.SIGNATURES:
            model.signatures = list(_signatures(model.graph, entry.value))
        elif entry.key.startswith(dialect.METADATA):
            _add_metadata(model, entry.key.removeprefix(dialect.METADATA), entry.value)


def _add_metadata(model: Model, name: str, text: str) -> None:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise FormatError(f"the metadata {name!r} are no base64: {error}") from None
    buffer = Buffer(np.frombuffer(raw, np.uint8))
    model.buffers.append(buffer)
    model.metadata.append((name, buffer))


def _signatures(graph: Graph, text: str) -> Iterator[Signature]:
    try:
        for entry in json.loads(text):
            inputs = _named(entry["inputs"], graph.inputs)
            outputs = _named(entry["outputs"], graph.outputs)
            yield Signature(str(entry["key"]), graph, inputs, outputs)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise FormatError(f"the entry {dialect.SIGNATURES} lists no signatures") from None


def _named(side: Mapping[str, int], values: Sequence[Value]) -> list[tuple[str, Value]]:
    if any(number < 0 for number in side.values()):
        raise LookupError("values are counted from 0")
    return [(name, values[number]) for name, number in side.items()]
