"""ONE's model recipes (protobuf text) to a model: messages to the tables of a file, generically.

The format: ``tflchef.proto`` and ``circlechef.proto`` in Samsung's ONE. Both are read alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luciole.importers.circle.model import from_tables
from luciole.importers.imported import Imported
from luciole.importers.reader import file_bytes, named
from luciole.importers.recipe import options
from luciole.importers.recipe.fields import (
    flag,
    integers,
    members,
    message,
    table,
    text,
    texts,
    word,
)
from luciole.importers.recipe.fillers import CONSTANTS_LIMIT, Bytes, fill
from luciole.importers.recipe.sparse import sparse_rows, sparsity
from luciole.ir import Model
from luciole.ir.errors import FormatError
from luciole.ir.verify import verify
from luciole.schema import opcodes, tables
from luciole.schema.enums import TensorType
from luciole.schema.printable import quoted, shorten
from luciole.schema.textproto import Entry, Message, entries

_GRAPH = ("operation", "input", "output", "name")
_OPERAND = (
    "name", "type", "shape", "filler", "quant", "sparsity", "is_variable", "shape_signature",
    "make_sparse", "mx_quant",
)  # fmt: skip
_NEWEST_VERSION = 1


def cook_file(path: Path, seed: int = 0, constants_limit: int = CONSTANTS_LIMIT) -> Imported:
    """Cook a recipe file as ``cook`` does. Raises LucioleError where it cannot be read."""
    text = file_bytes(path)
    with named(path):
        return cook(text, seed, constants_limit)


def cook(text: bytes, seed: int = 0, constants_limit: int = CONSTANTS_LIMIT) -> Imported:
    """Cook a recipe as ``import_recipe`` does, and find the faults of the model. Raises
    FormatError for what is no text, as a model in the place of a recipe.
    """
    if b"\0" in text:
        raise FormatError("no text: a recipe is needed; luciole chef --reverse writes a model's")
    source = text.decode("utf-8", "surrogateescape")
    model = import_recipe(source, seed, constants_limit)
    return Imported(model, verify(model))


def import_recipe(source: str, seed: int = 0, constants_limit: int = CONSTANTS_LIMIT) -> Model:
    """Cook a recipe's text.

    Random constants depend on ``seed`` and on their places alone. Raises FormatError, with the line
    or the operand that is wrong, also where constants would take more than ``constants_limit``
    bytes.
    """
    cooking = _Cook(seed, constants_limit)
    model = from_tables(cooking.model(entries(source)))
    model.use_buffer_offset = cooking.use_buffer_offset
    return model


class _Cook:
    """One recipe being cooked; buffers and operator codes are shared by its graphs."""

    def __init__(self, seed: int, constants_limit: int) -> None:
        self.seed = seed
        self.room = constants_limit
        self.use_buffer_offset = False
        self.buffers = [tables.Buffer()]
        self.codes: dict[tuple[int, int, str | None], int] = {}

    def model(self, recipe: Iterable[Entry]) -> tables.Model:
        """Cook everything; the recipe itself is the main graph."""
        tensors, rest = self._tensors(recipe, 0)
        fields = members(rest, "recipe", *_GRAPH, "version", "graph", "signature_def", "ext_offset")
        version = integers(fields, "version")
        self.use_buffer_offset = flag(fields, "ext_offset")
        if version and not 0 <= version[0] <= _NEWEST_VERSION:
            raise FormatError(f"recipe version {version[0]} is newer than {_NEWEST_VERSION}")
        cooked = [self._graph(tensors, rest, 0)]
        for index, entry in enumerate(fields["graph"], 1):
            cooked.append(self._graph(*self._tensors(message(entry), index), index))
        signatures = [_signature(message(e), cooked) for e in fields["signature_def"]]
        codes = [opcodes.encode(number, v, custom) for number, v, custom in self.codes]
        return tables.Model(
            operator_codes=codes,
            subgraphs=cooked,
            buffers=self.buffers,
            signature_defs=signatures or None,
        )

    def _tensors(self, graph: Iterable[Entry], index: int) -> tuple[list[tables.Tensor], Message]:
        """Cook a graph's operands, each before the next one is read, and gather its other
        fields.
        """
        tensors: list[tables.Tensor] = []
        rest = Message()
        for entry in graph:
            if entry.name == "operand":
                tensors.append(self._tensor(message(entry), (index, len(tensors))))
            else:
                rest.entries.append(entry)
        return tensors, rest

    def _graph(self, tensors: list[tables.Tensor], rest: Message, index: int) -> tables.SubGraph:
        fields = members(rest, "graph", *_GRAPH, *(() if index else _ROOT))
        name = text(fields, "name") or (f"sub_{index}" if index else "main")
        names = _Names([tensor.name or "" for tensor in tensors], name)
        return tables.SubGraph(
            name=name,
            tensors=tensors,
            operators=[self._operator(message(entry), names) for entry in fields["operation"]],
            inputs=names.indices(texts(fields, "input")),
            outputs=names.indices(texts(fields, "output")),
        )

    def _tensor(self, operand: Message, place: tuple[int, int]) -> tables.Tensor:
        fields = members(operand, "operand", *_OPERAND)
        name = text(fields, "name")
        if not name:
            raise FormatError(f"line {operand.line}: an operand has no name")
        dtype = _dtype(word(fields, "type"), name)
        shape = _dimensions(fields, "shape")
        tensor = tables.Tensor(name=name, type=dtype, shape=shape)
        if fields["shape_signature"]:
            tensor.shape_signature = _dimensions(fields, "shape_signature")
        tensor.is_variable = flag(fields, "is_variable")
        tensor.quantization = _quantization(fields)
        tensor.sparsity = sparsity(message(fields["sparsity"][0])) if fields["sparsity"] else None
        if fields["filler"]:
            content = self._content(message(fields["filler"][0]), tensor, place)
            if flag(fields, "make_sparse"):
                content, tensor.sparsity = sparse_rows(content, dtype, shape, name, self.room)
            self.room -= len(content)
            tensor.buffer = len(self.buffers)
            self.buffers.append(tables.Buffer(data=content))
        return tensor

    def _content(self, filler: Message, tensor: tables.Tensor, place: tuple[int, int]) -> Bytes:
        fields = members(filler, "filler", "tag", "arg")
        shape = [] if tensor.shape is None else tensor.shape.tolist()
        tag, arguments = text(fields, "tag") or "", texts(fields, "arg")
        if tensor.sparsity is not None and tag == "explicit":
            shape = [len(arguments)]  # only the elements that are there
        try:
            return fill(tag, arguments, tensor.type, shape, (self.seed, *place), self.room)
        except FormatError as error:
            raise FormatError(
                f"line {filler.line}: operand {quoted(tensor.name)}: {error}"
            ) from None

    def _operator(self, operation: Message, names: _Names) -> tables.Operator:
        kind = options.kind_of(operation)
        idle = (e.name for e in operation if options.is_idle(e))
        fields = members(operation, "operation", *options.OPERATION, kind.message, *idle)
        version = integers(fields, "version") or [1]
        code = (kind.number, version[0], kind.custom)
        operator = tables.Operator(
            opcode_index=self.codes.setdefault(code, len(self.codes)),
            inputs=names.indices(texts(fields, "input")),
            outputs=names.indices(texts(fields, "output")),
        )
        options.set_options(operator, kind, fields)
        return operator


_ROOT = ("version", "graph", "signature_def", "ext_offset")
"""Fields that only the main graph's message has."""


class _Names:
    """The tensors of a graph by name."""

    def __init__(self, names: Sequence[str], graph: str) -> None:
        self.graph = graph
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise FormatError(f"graph {quoted(graph)}: two operands are called {quoted(twice[0])}")
        self.places = {name: index for index, name in enumerate(names)}

    def index(self, name: str) -> int:
        """Find a tensor's number; -1 for the empty name, which stands for an absent operand."""
        if name and name not in self.places:
            raise FormatError(f"graph {quoted(self.graph)}: there is no operand {quoted(name)}")
        return self.places.get(name, -1)

    def indices(self, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Find the numbers of several tensors."""
        return np.array([self.index(name) for name in names], np.int32)


def _dtype(name: str | None, operand: str) -> TensorType:
    if name is None or name not in TensorType.__members__:
        raise FormatError(
            f"operand {quoted(operand)}: type {shorten(str(name))} is no element type"
        )
    return TensorType[name]


def _dimensions(fields: dict[str, list[Any]], name: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    if not fields[name]:
        return np.zeros(0, np.int32)
    return np.array(integers(members(message(fields[name][0]), name, "dim"), "dim"), np.int32)


def _quantization(fields: dict[str, list[Any]]) -> tables.QuantizationParameters | None:
    if not fields["quant"] and not fields["mx_quant"]:
        return None
    result = tables.QuantizationParameters()
    if fields["quant"]:
        result = table(tables.QuantizationParameters, message(fields["quant"][0]), {})
    if fields["mx_quant"]:
        result.details = table(tables.MXQuantization, message(fields["mx_quant"][0]), {})
    return result


def _signature(source: Message, graphs: Sequence[tables.SubGraph]) -> tables.SignatureDef:
    fields = members(
        source, "signature_def", "inputs", "outputs", "signature_key", "subgraph_index"
    )
    index = (integers(fields, "subgraph_index") or [0])[0]
    if not 0 <= index < len(graphs):
        raise FormatError(f"line {source.line}: there is no graph {index}")
    graph = graphs[index]
    names = _Names([t.name or "" for t in graph.tensors or []], graph.name or "")
    inputs, outputs = (
        [_tensor_map(message(entry), names) for entry in fields[side]]
        for side in ("inputs", "outputs")
    )
    key = text(fields, "signature_key")
    return tables.SignatureDef(
        inputs=inputs, outputs=outputs, signature_key=key, subgraph_index=index
    )


def _tensor_map(source: Message, names: _Names) -> tables.TensorMap:
    """Read an argument or a result; its tensor is given by name or by number."""
    fields = members(source, "a signature's tensor", "name", "tensor", "tensor_index")
    name, numbers = text(fields, "tensor"), integers(fields, "tensor_index")
    if name is None and not numbers:
        raise FormatError(f"line {source.line}: neither tensor nor tensor_index is given")
    index = numbers[0] if name is None else names.index(name)
    return tables.TensorMap(name=text(fields, "name"), tensor_index=index)
