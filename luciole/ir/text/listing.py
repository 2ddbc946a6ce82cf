"""A model as text.

``dump`` is laid out like ONE's circledump, for people who know it and scripts that read it;
``describe`` gives the same facts for JSON; ``show`` is one line per operator, for messages and for
tests of passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luciole.ir.blockwise import blocks_of
from luciole.ir.findings import Finding, refusal
from luciole.ir.graph import Graph, Model, Signature
from luciole.ir.op import Op
from luciole.ir.quantization import vectors
from luciole.ir.text.common import (
    Code,
    Numbering,
    code_name,
    code_of,
    deprecated_code,
    hex_bytes,
    index_vector,
    listed,
    one_line,
    scalar,
    shortened,
)
from luciole.ir.text.metadata import table_lines
from luciole.ir.text.options import INDENT, option_lines
from luciole.ir.text.plain import describe
from luciole.ir.text.ssa import show, show_op
from luciole.ir.value import Value
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.tables import (
    DimensionMetadata,
    MXQuantization,
    QuantizationParameters,
    SparsityParameters,
)

__all__ = ["describe", "dump", "dump_lines", "show", "show_op"]

_DOUBLE_RULE, _RULE = "=" * 67, "-" * 67
_QUANTIZATION, _SPARSITY = f"{INDENT}Quantization: ", f"{INDENT}Sparsity: "
_LABELS = {"zero_point": "zeropt"}
"""ONE's names of vectors whose name in the schema it shortens."""

_OPERATORS = (
    "Operators: O(subgraph index : operator index) OpCodeName ",
    "    Option(values) ... <-- depending on OpCode",
    "    I T(tensor index) OperandName <-- as input",
    "    O T(tensor index) OperandName <-- as output",
)


def dump(model: Model, path: str, dialect: Dialect = CIRCLE) -> str:
    """Write the text that ONE's ``circledump`` prints for a model read from a path.

    Equal to it but for blanks around options (ONE is not consistent there) and for options that ONE
    does not print. Every name stays on its line: see ``one_line``.
    """
    return "\n".join(dump_lines(model, path, dialect)) + "\n"


def dump_lines(
    model: Model, path: str, dialect: Dialect = CIRCLE, findings: Sequence[Finding] = ()
) -> Iterator[str]:
    """Write the lines of ``dump`` without their ends. ``dialect`` gives the model version.
    ``findings`` come last where one is an error: ONE has nothing like them.
    """
    numbers = Numbering(model)
    yield from (f"Dump: {one_line(path)}", "", _DOUBLE_RULE)
    yield from (
        f"Model version: {dialect.model_version}",
        f" # sub graphs: {len(model.graphs)}",
        "",
    )
    yield from _codes(numbers)
    yield from _buffers(numbers)
    if model.metadata:
        yield from _metadata(model, numbers)
    if model.signatures:
        yield from _signatures(model, numbers)
    for graph in model.graphs:
        yield from _graph(graph, numbers)
    if refusal(findings) is not None:
        yield from _findings(findings)
    yield from (_DOUBLE_RULE, "")


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    yield from (_RULE, "Findings: severity [code] place: sentence")
    yield from (one_line(str(finding)) for finding in findings)
    yield ""


def _codes(numbers: Numbering) -> Iterator[str]:
    yield "Operator Codes: [order] OpCodeName (OpCode Enum)"
    for (builtin, custom, version), index in numbers.codes.items():
        code = f"code: {builtin}, dep_code: {deprecated_code(builtin)}, version: {version}"
        yield f"[{index}] {code_name(builtin, custom) or '(invalid)'} ({code})"
    yield ""


def _buffers(numbers: Numbering) -> Iterator[str]:
    yield "Buffers: B(index) (length) values, if any; (length *) for ext_offset"
    for index, buffer in enumerate(numbers.buffers):
        yield f"B({index}) ({len(buffer)}) {hex_bytes(buffer.data)}"
    yield ""


def _metadata(model: Model, numbers: Numbering) -> Iterator[str]:
    yield "metadata : B(index) name"
    shown: set[int] = set()
    for name, buffer in model.metadata:
        yield f"B({numbers.buffer(buffer)}) {one_line(name)}"
        if id(buffer) not in shown:  # entries that share a buffer say the same
            yield from table_lines(name, buffer)
        shown.add(id(buffer))
    yield ""


def _signatures(model: Model, numbers: Numbering) -> Iterator[str]:
    yield "SignatureDef"
    for index, signature in enumerate(model.signatures):
        graph = numbers.graph(signature.graph)
        yield f"S({index}) signature_key({one_line(signature.key)}), sub_graph({graph})"
        yield from _signature(signature, graph, numbers)
    yield ""


def _signature(signature: Signature, graph: int, numbers: Numbering) -> Iterator[str]:
    for letter, side in (("I", signature.inputs), ("O", signature.outputs)):
        for index, (name, value) in enumerate(side):
            yield f"{INDENT}{letter}({index}) T({graph}:{numbers.tensor(value)}) {one_line(name)}"


def _graph(graph: Graph, numbers: Numbering) -> Iterator[str]:
    place = numbers.graph(graph)
    name = "(noname)" if graph.name is None else one_line(graph.name)
    yield from (_RULE, f"Sub-Graph: #{place} {name}", "")
    yield (
        "Operands: T(subgraph index : tensor index) TYPE (shape) (shape_signature) "
        "B(buffer index) (variable) OperandName"
    )
    for value in graph.values:
        yield from _operand(value, place, numbers)
    yield from _OPERATORS
    for index, op in enumerate(graph.ops):
        yield from _operator(op, f"O({place}:{index})", place, numbers)
    yield from ("", "Inputs/Outputs: I(input)/O(output) T(tensor index) OperandName")
    for letter, values in (("I", graph.inputs), ("O", graph.outputs)):
        yield from (f"{letter} {_reference(value, place, numbers)}" for value in values)
    yield ""


def _reference(value: Value | None, graph: int, numbers: Numbering) -> str:
    name = "" if value is None else one_line(value.name) or "(noname)"
    return f"T({graph}:{numbers.tensor(value)}) {name}"


def _operand(value: Value, graph: int, numbers: Numbering) -> Iterator[str]:
    """Write a tensor: what it is, how it is quantized, and a line that ends it."""
    signature = "" if value.shape_signature is None else f"({listed(value.shape_signature)}) "
    where = f"B({numbers.buffer(value.buffer)}) {'(variable) ' if value.is_variable else ''}"
    kind = f"{value.dtype.name} ({listed(value.dims)}) {signature}{where}"
    yield f"T({graph}:{numbers.tensor(value)}) {kind}{one_line(value.name) or '(noname)'}"
    if value.quantization is not None:
        yield from _blocks(value, graph, numbers)
        yield from _quantization(value.quantization)
    if value.sparsity is not None:
        yield from _sparsity(value.sparsity)
    else:
        yield ""


def _blocks(value: Value, graph: int, numbers: Numbering) -> Iterator[str]:
    """Write blocks, which ONE does not have: their extent, and the tensors with their scales and
    zero points.
    """
    details = blocks_of(value)
    if details is not None:
        tensors = zip(("scales", "zero_points"), value.block_tensors, strict=True)
        named = [f"{name}({_reference(v, graph, numbers)})" for name, v in tensors if v is not None]
        size = f"block_size({details.block_size})"
        yield f"{INDENT}Block Quantization: {' '.join([size, *named])}"


def _quantization(table: QuantizationParameters) -> Iterator[str]:
    if isinstance(table.details, MXQuantization):
        yield from (f"{INDENT}MX Quantization: axis ({table.details.axis})", "")
    present = {name: vector for name, vector in vectors(table).items() if vector is not None}
    if not (present.keys() >= {"min", "max"} or present.keys() >= {"scale", "zero_point"}):
        return
    line = _QUANTIZATION
    for name, vector in present.items():
        line += f"{_LABELS.get(name, name)}({shortened(vector)}) "
        if len(vector) > 1:
            yield line
            line = " " * len(_QUANTIZATION)
    yield f"{line}quantized_dimension({table.quantized_dimension})"


def _sparsity(table: SparsityParameters) -> Iterator[str]:
    """Write the parts below each other, and the blanks before a part that does not come."""
    line = _SPARSITY
    for label, vector in (
        ("traversal_order", table.traversal_order),
        ("block_map", table.block_map),
    ):
        if vector is not None:
            yield f"{line}{label}({shortened(vector)}) "
            line = " " * len(_SPARSITY)
    for index, dimension in enumerate(table.dim_metadata or []):
        line += f"dim_metadata[{index}]: "
        for part in _dimension(dimension):
            yield line + part
            line = " " * len(line)
        line = " " * len(_SPARSITY)
    yield line


def _dimension(table: DimensionMetadata) -> Iterator[str]:
    yield f"format({scalar(table.format)}) "
    yield f"dense_size({table.dense_size}) "
    for label, union in (("segments", table.array_segments), ("indices", table.array_indices)):
        yield f"array_{label}_type({'NONE' if union is None else type(union).__name__}) "
        yield f"array_{label}({shortened(index_vector(union))})"


def _operator(op: Op, place: str, graph: int, numbers: Numbering) -> Iterator[str]:
    key: Code = code_of(op)
    yield f"{place} {code_name(*key[:2]) or f'(invalid: {numbers.codes[key]})'} "
    yield from option_lines(op, numbers)
    for letter, values in (("I", op.operands), ("O", op.results)):
        yield from (f"{INDENT}{letter} {_reference(value, graph, numbers)}" for value in values)
