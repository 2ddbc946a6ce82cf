"""ONNX files to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.extents import Settled
from luciole.importers.imported import Imported
from luciole.importers.onnx.building import Budget, Building, plain
from luciole.importers.onnx.constants import outside_bytes
from luciole.importers.onnx.element_types import held_type
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.extents import extents_of, open_extents, settle
from luciole.importers.onnx.extras import restore
from luciole.importers.onnx.finish import (
    finish,
    keep_biases,
    keep_constants,
    keep_halves,
    keep_names,
)
from luciole.importers.onnx.functions import Functions, versions
from luciole.importers.onnx.nodes import SINGLE, Nodes, Scope, names_given
from luciole.importers.reader import file_bytes
from luciole.ir import Array, Graph, Model, Signature, TensorType, UnsupportedError, Value
from luciole.ir.analysis.origins import SourceNode
from luciole.ir.errors import FormatError, missing_extra
from luciole.ir.verify import verify
from luciole.schema.onnx_dialect import NUMBERS, PRODUCER
from luciole.schema.printable import printable, quoted, shorten

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

OLDEST = 6
"""The first operator set that is read."""
_LONGEST = 200
_CLOSES = (
    "luciole import --batch N, --shape NAME=1,3,64,64 or --dim NAME=N gives them sizes (batch=, "
    "shapes= and dims= of luciole.load)"
)
_MOST_LISTED = 100
"""Operators without a form that a sentence lists."""
SPARE_BYTES, _TIMES = 1 << 30, 5
"""Memory that constants may take: SPARE_BYTES and _TIMES the bytes of the file and of files beside
it: they are stored, turned, cast and computed with.
"""


def load(path: Path, settled: Settled | None = None) -> Imported:
    """Import a file, with constants that it keeps in others below its folder, and with what is
    ``settled`` of its inputs.

    Raises what ``extents.settle`` does, LucioleError where onnx is not installed, FormatError for a
    damaged file, and UnsupportedError, which lists all operators that have no form here.
    """
    data = file_bytes(path)
    try:
        return _imported(_parsed(data), path.parent, len(data), settled=settled)
    except (FormatError, UnsupportedError) as error:
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(f"{path.name}: {error}", error.missing) from None
        raise FormatError(f"{path.name}: {error}") from None


def from_bytes(data: bytes, settled: Settled | None = None) -> Imported:
    """Import a file's bytes. Raises what ``load`` does; constants in other files are refused."""
    return _imported(_parsed(data), None, len(data), settled=settled)


def _sources(graph: GraphProto) -> list[SourceNode]:
    """List the nodes of a graph, their tensors by the names that values get."""
    return [
        SourceNode(
            printable(node.op_type),
            printable(_text(node.name) or next(filter(None, node.output), "")),
            tuple(plain(name) for name in node.input if name),
            tuple(plain(name) for name in node.output if name),
        )
        for node in graph.node
    ]


def _text(name: str | bytes) -> str:
    """Write a node's own name, which is bytes where they are no UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")


def from_proto(proto: ModelProto, constants: Mapping[str, Array] | None = None) -> Model:
    """Import a model; ``constants`` take the place of inputs of their names. Raises what ``load``
    does.
    """
    return _imported(proto, None, proto.ByteSize(), constants).sound()


def import_proto(proto: ModelProto, settled: Settled | None = None) -> Imported:
    """Import a model with what is ``settled`` of its inputs. Raises what ``load`` does."""
    return _imported(proto, None, proto.ByteSize(), settled=settled)


def _parsed(data: bytes) -> ModelProto:
    try:
        import onnx
    except ImportError:
        raise missing_extra("reading ONNX files needs onnx", "onnx") from None
    try:
        proto: ModelProto = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's, which is no package of ours
        raise FormatError(f"the file is damaged: {' '.join(str(error).split())}") from None
    return proto


def _imported(
    proto: ModelProto,
    folder: Path | None,
    size: int,
    constants: Mapping[str, Array] | None = None,
    settled: Settled | None = None,
) -> Imported:
    opsets = versions(proto.opset_import)
    if not proto.graph.node and not proto.graph.output:
        raise FormatError("there is no graph in it")
    if opsets.get("", OLDEST) < OLDEST:
        raise UnsupportedError(f"operator set {opsets['']}: {OLDEST} and later are read")
    if settled:
        constants = settle(proto.graph, settled)
    size += outside_bytes(proto.graph.initializer, folder)
    budget = Budget(SPARE_BYTES + _TIMES * size)
    nodes = Nodes(Functions(proto.functions), folder, budget)
    nodes.opsets, nodes.is_ours = opsets, proto.producer_name == PRODUCER
    nodes.is_half = not nodes.is_ours and any(_is_half(t) for t in proto.graph.initializer)
    try:
        with budget.counted:
            model = _model(nodes, proto, constants or {})
            return Imported(model, verify(model), nodes=_sources(proto.graph))
    except (RefusedError, MemoryError) as error:
        raise UnsupportedError(f"it cannot be imported: {error}") from None


def _model(nodes: Nodes, proto: ModelProto, constants: Mapping[str, Array]) -> Model:
    graph, name = Graph("main"), proto.producer_name
    model = Model([], printable(name) or None if isinstance(name, str) else None)
    model.add_graph(graph)
    k = nodes.building(graph)
    try:
        _fill(k, nodes, proto.graph, constants)
    except (TypeError, AttributeError, RecursionError, UnicodeError) as error:
        said = shorten(" ".join(str(error).split()), _LONGEST)
        raise FormatError(f"the file is damaged: {type(error).__name__}: {said}") from error
    _sign(model, proto.graph)
    restore(model, proto)
    finish(model, nodes.is_ours)
    keep_biases(graph, k.biases)
    keep_names(graph, k.made)
    keep_constants(graph, {tensor.name for tensor in proto.graph.initializer})
    if nodes.is_half:
        keep_halves(graph)
    return model


def _is_half(tensor: TensorProto) -> bool:
    return bool(tensor.data_type == NUMBERS[TensorType.FLOAT16])


def _fill(k: Building, nodes: Nodes, graph: GraphProto, constants: Mapping[str, Array]) -> None:
    scope: Scope = {}
    nodes.constants(k, graph.initializer, scope)
    for info in graph.input:
        if info.name not in scope:
            _add_input(k, nodes, info, scope, constants.get(info.name))
    nodes.run(k, graph.node, scope, [v.name for v in graph.output], names_given(graph))
    if nodes.refused:
        _refuse(nodes.refused, open_extents(graph))
    outputs = []
    for info in graph.output:
        if info.name not in scope:
            raise FormatError(f"the output {quoted(info.name)} is made by nothing")
        value = _as_declared(k, scope[info.name], info)
        if value.is_input or value.is_constant or value in outputs:
            value = k.copy(value)
        k.rename(value, info.name)
        outputs.append(value)
    k.graph.outputs = outputs


def _as_declared(k: Building, value: Value, info: ValueInfoProto) -> Value:
    """Bring an output that is computed with 32 bits to the 16 bits that the file says."""
    said = info.type.tensor_type.elem_type == NUMBERS[TensorType.FLOAT16]
    return k.cast(value, TensorType.FLOAT16) if said and value.dtype == SINGLE else value


def _add_input(
    k: Building, nodes: Nodes, info: ValueInfoProto, scope: Scope, constant: Array | None
) -> None:
    if not info.type.HasField("tensor_type"):
        nodes.refuse(f"input {quoted(info.name)}", "it is no tensor")
        return
    tensor = info.type.tensor_type
    try:
        dtype = held_type(tensor.elem_type, packed=False)
    except RefusedError as error:
        nodes.refuse(f"input {quoted(info.name)}", str(error))
        return
    if not tensor.HasField("shape"):
        nodes.refuse(f"input {quoted(info.name)}", "it has any number of axes")
        return
    dims = [n if isinstance(n, int) else None for n in extents_of(info)]
    if any(n is not None and n >= 1 << 31 for n in dims):
        raise FormatError(f"the input {quoted(info.name)} has the extents {dims}")
    name = k.name(info.name)
    if constant is not None:
        value = k.constant(constant, name, dtype)
    else:
        value = k.graph.add_input(name, tuple(dims), dtype)
    nodes.note_type(value, tensor.elem_type)
    single = nodes.is_half and dtype == TensorType.FLOAT16
    scope[info.name] = k.cast(value, SINGLE) if single else value


def _refuse(refused: Mapping[str, str], open_: Sequence[str]) -> None:
    """Raise UnsupportedError that lists the nodes that have no form here, and the inputs that leave
    extents open, which may be the reason.
    """
    listed = [f"{kind} ({reason})" for kind, reason in refused.items()]
    left_out = len(listed) - _MOST_LISTED
    named = [*listed[:_MOST_LISTED], *([f"and {left_out} more"] if left_out > 0 else [])]
    hint = f". Open extents: {', '.join(open_)}; {_CLOSES}" if open_ else ""
    raise UnsupportedError(f"not imported: {'; '.join(named)}{hint}", listed)


def _sign(model: Model, graph: GraphProto) -> None:
    """Keep the names of inputs and outputs as a signature where values have others."""
    inputs_of_file = [v.name for v in graph.input]
    inputs = [(v.name, v) for v in model.graph.inputs]
    outputs = list(zip((v.name for v in graph.output), model.graph.outputs, strict=True))
    if any(value.name != name for name, value in outputs) and inputs_of_file is not None:
        model.signatures.append(Signature("serving_default", model.graph, inputs, outputs))
