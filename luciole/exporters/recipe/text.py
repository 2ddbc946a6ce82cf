"""A model as ONE's model recipe (protobuf text), from the tables of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.exporters.circle.tables import to_tables
from luciole.exporters.recipe.fillers import Filler, filler_of
from luciole.exporters.recipe.options import write_options, write_type
from luciole.ir import Array, Model
from luciole.ir.errors import FormatError
from luciole.ir.quantization import vectors
from luciole.ir.text.common import index_vector
from luciole.schema import opcodes, tables
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.recipe import INDEX_VECTORS
from luciole.schema.table import Table
from luciole.schema.textproto import Message, Scalar, Word
from luciole.schema.textproto_writer import write_text

MOST_VALUES = 100
"""Elements of a constant up to which a recipe spells them out."""


@dataclass
class Recipe:
    """A recipe's text, and a sentence for each property of the model that it does not hold."""

    text: str
    notes: list[str] = field(default_factory=list)


def to_recipe(model: Model, most_values: int = MOST_VALUES, dialect: Dialect = CIRCLE) -> Recipe:
    """Write the recipe that cooks a model of the same graphs.

    Constants of more than ``most_values`` elements become random ones with the same mean and
    deviation, or one value where all are equal. ``dialect`` chooses the spelling of options that
    tflchef and circlechef name differently. Raises UnsupportedError for an operator without a
    name, FormatError for a model without a graph.
    """
    if not model.graphs:
        raise FormatError("the model has no graph: there is nothing to write a recipe of")
    writer = _Writer(to_tables(model), most_values, dialect is CIRCLE)
    recipe = writer.model()
    if model.use_buffer_offset:
        recipe.add("ext_offset", Word("true"))
    lost = (f"{what} ({n})" for what, n in writer.lost.items())
    return Recipe(write_text(recipe), [*_model_losses(model), *lost])


def _model_losses(model: Model) -> list[str]:
    notes = []
    if model.description:
        notes.append("the description")
    if model.metadata or model.metadata_buffers:
        notes.append(f"metadata ({len(model.metadata) + len(model.metadata_buffers)})")
    return notes


class _Writer:
    """One model being written; counts what gets lost."""

    def __init__(self, root: tables.Model, most_values: int, circle: bool) -> None:
        self.root = root
        self.most_values = most_values
        self.circle = circle
        self.lost: Counter[str] = Counter()
        self.names: list[list[str]] = []

    def model(self) -> Message:
        """Write the main graph, what belongs to the model, then the other graphs."""
        graphs = self.root.subgraphs or []
        self.names = [self._names(graph) for graph in graphs]
        recipe = self._graph(0, graphs[0])
        if len(graphs) > 1 or self.root.signature_defs:
            recipe.add("version", 1)
        for signature in self.root.signature_defs or []:
            recipe.add("signature_def", self._signature(signature))
        for index, graph in enumerate(graphs[1:], 1):
            recipe.add("graph", self._graph(index, graph))
        return recipe

    def _names(self, graph: tables.SubGraph) -> list[str]:
        """List the tensors' names, made different where two are alike: recipes know no numbers."""
        taken: dict[str, int] = {}
        for index, tensor in enumerate(graph.tensors or []):
            name = tensor.name or f"tensor_{index}"
            unique, count = name, 0
            while unique in taken:
                count += 1
                unique = f"{name}_{count}"
            self.lost["renamed tensors"] += unique != tensor.name
            taken[unique] = index
        self.lost = +self.lost
        return list(taken)

    def _graph(self, index: int, graph: tables.SubGraph) -> Message:
        message, names = Message(), self.names[index]
        if graph.name:
            message.add("name", graph.name)
        for name, tensor in zip(names, graph.tensors or [], strict=True):
            message.add("operand", self._operand(name, tensor))
        for operator in graph.operators or []:
            message.add("operation", self._operation(operator, names))
        message.add("input", *_named(graph.inputs, names))
        message.add("output", *_named(graph.outputs, names))
        return message

    def _operand(self, name: str, tensor: tables.Tensor) -> Message:
        message = Message()
        message.add("name", name)
        message.add("type", Word(tensor.type.name))
        message.add("shape", _repeated("dim", tensor.shape))
        if tensor.shape_signature is not None and len(tensor.shape_signature):
            message.add("shape_signature", _repeated("dim", tensor.shape_signature))
        if tensor.is_variable:
            message.add("is_variable", Word("true"))
        filler = self._filler(tensor)
        if filler is not None:
            content = Message()
            content.add("tag", filler.tag)
            content.add("arg", *filler.arguments)
            message.add("filler", content)
        self._quantization(message, tensor.quantization)
        if tensor.sparsity is not None:
            message.add("sparsity", _sparsity(tensor.sparsity))
        if tensor.variant_tensors:
            self.lost["types inside variant tensors"] += 1
        return message

    def _filler(self, tensor: tables.Tensor) -> Filler | None:
        buffers = self.root.buffers or []
        data = buffers[tensor.buffer].data if 0 < tensor.buffer < len(buffers) else None
        if data is None and not (tensor.buffer and tensor.shape is not None and 0 in tensor.shape):
            return None
        raw = np.zeros(0, np.uint8) if data is None else data
        filler = filler_of(raw, tensor, self.most_values)
        if filler is None:
            self.lost["constants of a type without fillers"] += 1
        elif filler.tag == "gaussian":
            self.lost["the values of large constants, which become random"] += 1
        return filler

    def _quantization(self, message: Message, table: tables.QuantizationParameters | None) -> None:
        if table is None:
            return
        quant = Message()
        for name, vector in vectors(table).items():
            quant.entries += _repeated(name, vector).entries
        if table.quantized_dimension:
            quant.add("quantized_dimension", table.quantized_dimension)
        if isinstance(table.details, tables.MXQuantization):
            axis = Message()
            axis.add("axis", table.details.axis)
            message.add("mx_quant", axis)
        elif table.details is not None:
            self.lost["quantization details"] += 1
        if quant.entries or table.details is None:
            message.add("quant", quant)

    def _operation(self, operator: tables.Operator, names: Sequence[str]) -> Message:
        message = Message()
        code = (self.root.operator_codes or [])[operator.opcode_index]
        number = opcodes.resolve(code)
        write_type(message, number, code.custom_code)
        message.add("input", *_named(operator.inputs, names))
        message.add("output", *_named(operator.outputs, names))
        if code.version != 1:
            message.add("version", code.version)
        self.lost.update(write_options(message, operator, number, code.custom_code, self.circle))
        if operator.intermediates is not None:
            self.lost["operators' lists of intermediate tensors"] += 1
        if operator.mutating_variable_inputs is not None:
            self.lost["operators' lists of changing inputs"] += 1
        return message

    def _signature(self, table: tables.SignatureDef) -> Message:
        message, names = Message(), self.names[table.subgraph_index]
        for side, maps in (("inputs", table.inputs), ("outputs", table.outputs)):
            for entry in maps or []:
                argument = Message()
                argument.add("name", entry.name or "")
                argument.add("tensor", names[entry.tensor_index])
                message.add(side, argument)
        message.add("signature_key", table.signature_key or "")
        message.add("subgraph_index", table.subgraph_index)
        return message


def _named(numbers: Array | None, names: Sequence[str]) -> list[Scalar]:
    """Name tensors, the empty one for an absent operand."""
    return [] if numbers is None else ["" if n < 0 else names[n] for n in numbers.tolist()]


def _repeated(name: str, numbers: Array | None) -> Message:
    """Make a message with one field, once for each number."""
    message = Message()
    if numbers is not None:
        texts = (Word(str(n)) for n in numbers)  # NumPy's own text is the shortest that reads equal
        message.add(name, *texts)
    return message


def _sparsity(table: tables.SparsityParameters) -> Message:
    message = Message()
    message.add("traversal_order", _repeated("dim", table.traversal_order))
    message.add("block_map", _repeated("dim", table.block_map))
    for dimension in table.dim_metadata or []:
        part = Message()
        part.add("format", Word(dimension.format.name))
        part.add("dense_size", dimension.dense_size)
        for name, vector in (
            ("array_segments", dimension.array_segments),
            ("array_indices", dimension.array_indices),
        ):
            if vector is not None:
                part.add(name, _indices(vector))
        message.add("dim_metadata", part)
    return message


def _indices(vector: Table) -> Message:
    message = _repeated("dim", index_vector(vector))
    kinds = {table: name for name, table in INDEX_VECTORS.items() if table}
    message.add("type", Word(kinds[type(vector).__name__]))
    return message
