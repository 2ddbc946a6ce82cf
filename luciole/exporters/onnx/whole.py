"""A model as an ONNX file."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from luciole.exporters.onnx.building import Building, Shared
from luciole.exporters.onnx.elements import SINCE_FOUR_BITS
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.functions import functions
from luciole.exporters.onnx.integers import needs_four_bits
from luciole.exporters.onnx.nodes import Term, assign_names, drop_unused
from luciole.exporters.onnx.preparing import prepared
from luciole.exporters.onnx.protos import graph_proto
from luciole.exporters.onnx.rules import apply, apply_exactly, is_exact
from luciole.ir import Graph, Model, Op, Shape, Value
from luciole.ir.errors import SLIPS, FormatError, UnsupportedError, missing_extra
from luciole.ir.text.common import utf8
from luciole.ir.value import UNRANKED
from luciole.schema import onnx_dialect as dialect

if TYPE_CHECKING:
    from onnx import ModelProto

OLDEST, LARGEST = dialect.OPSET, 1 << 31
"""The first operator set that is written, and bytes that no protocol buffer has."""


def export_model(model: Model, opset: int | None = None, exact: bool = False) -> bytes:
    """Give an ONNX file's bytes, of an operator set (unless it is given 18, or 21 where there are
    integers of 4 or 16 bits); ``exact`` has int8 layers compute as TFLite's kernels do, see
    ``operators.exact``.

    Raises UnsupportedError that lists every operator that ONNX cannot say, FormatError for more
    than 2 GB, LucioleError for an operator set that is not known and where onnx is not installed.
    """
    proto = to_proto(model, opset, exact)
    if proto.ByteSize() >= LARGEST:
        raise FormatError("the model has more than 2 GB, which no .onnx file of one part holds")
    return bytes(proto.SerializeToString(deterministic=True))


def to_proto(model: Model, opset: int | None = None, exact: bool = False) -> ModelProto:
    """Make the protocol buffer of a model's file. Raises what ``export_model`` does."""
    try:
        import onnx
    except ImportError:
        raise missing_extra("writing .onnx needs onnx", "onnx") from None
    number = _oldest(model) if opset is None else opset
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= number <= newest:
        raise UnsupportedError(f"opset {number} is not written, {OLDEST} to {newest} are")
    stays = is_exact if exact else _nothing
    whole = _Whole(prepared(model, stays), number, stays)
    k = whole.built()
    domains = [("", number), *([(dialect.DOMAIN, 1)] if k.shared.functions else [])]
    ids = [onnx.helper.make_opsetid(*pair) for pair in domains]
    proto = onnx.helper.make_model(
        graph_proto(k),
        opset_imports=ids,
        functions=functions(sorted(k.shared.functions), number),
        ir_version=max(dialect.IR_VERSION, onnx.helper.find_min_ir_version_for(ids[:1])),
        producer_name=dialect.PRODUCER,
        doc_string=utf8(model.description or ""),
    )
    _complete(proto)
    onnx.helper.set_model_props(proto, dict(_properties(model)))
    return proto


def _oldest(model: Model) -> int:
    """Return the first operator set that is written and has the model's integers."""
    values = (value for graph in model.graphs for value in graph.values)
    return SINCE_FOUR_BITS if any(map(needs_four_bits, values)) else OLDEST


def _nothing(op: Op) -> bool:
    return False


def _complete(proto: ModelProto) -> None:
    """Give outputs whose shape a model leaves open the shape that ONNX infers."""
    from onnx.shape_inference import infer_shapes

    if all(value.type.tensor_type.HasField("shape") for value in proto.graph.output):
        return
    for value, known in zip(proto.graph.output, infer_shapes(proto).graph.output, strict=True):
        value.CopyFrom(known)


class _Whole:
    """One model being written. Refusals are gathered, to be reported all at once."""

    def __init__(self, model: Model, opset: int, stays: Callable[[Op], bool]) -> None:
        self.model = model
        self.stays = stays
        self.shared = Shared(opset, self._convert)
        self.refused: dict[tuple[str, str], list[str]] = defaultdict(list)

    def built(self) -> Building:
        """Write the main graph. Raises UnsupportedError for what was refused."""
        graph = self.model.graph
        k = Building(self.shared, graph.name or "main")
        for value in graph.inputs:
            term = Term(value.name, named=True)
            k.last[value] = term
            k.body.inputs.append((term, value.dtype, _shape(value)))
        self.shared.open.append(graph)
        self._convert(k, graph)
        self._refuse()
        for value in graph.outputs:
            term = _own(k, value.name, k.of(value))
            k.body.outputs.append((term, value.dtype, _shape(value)))
        drop_unused(k.body)
        assign_names([*k.body.terms()])
        return k

    def _convert(self, k: Building, graph: Graph) -> None:
        for op in graph.ops:
            try:
                (apply_exactly if self.stays(op) else apply)(k, op)
            except RefusedError as why:
                self._note(k, op, str(why))
            except SLIPS as why:
                self._note(k, op, f"its rule does not take this ({type(why).__name__}: {why})")

    def _note(self, k: Building, op: Op, why: str) -> None:
        self.refused[op.kind, why].append(op.name)
        for value in op.results:
            k.last[value] = Term(value.name)

    def _refuse(self) -> None:
        missing = [
            f"{kind} {names[0]!r}{_others(len(names))}: {why}"
            for (kind, why), names in self.refused.items()
        ]
        if missing:
            raise UnsupportedError("ONNX: " + "; ".join(missing), missing)


def _shape(value: Value) -> Shape | None:
    """Return a shape, None where a file leaves it open and its operator does not determine it."""
    producer = value.producer
    shape = value.shape
    if value.has_open_rank and producer is not None:
        shape = producer.op.result_shapes()[producer.slot]
    return None if shape is UNRANKED else shape


def _others(count: int) -> str:
    return "" if count == 1 else f" and {count - 1} more"


def _own(k: Building, name: str, term: Term) -> Term:
    """Give an output a tensor that is computed for it and has its name."""
    computed = any(term in node.results for node in reversed(k.body.nodes))
    taken = any(term is other for other, *_ in k.body.outputs)
    if computed and not taken and term.named and term.name == name:
        return term
    copy = k.add("Identity", term)
    copy.name, copy.named = name, True
    return copy


def _properties(model: Model) -> Iterator[tuple[str, str]]:
    """Name the properties that ONNX has no place for: signatures and metadata."""
    if model.signatures:
        yield dialect.SIGNATURES, json.dumps(list(_signatures(model)))
    for name, buffer in model.metadata:
        raw = b"" if buffer.data is None else buffer.data.tobytes()
        yield dialect.METADATA + utf8(name), base64.b64encode(raw).decode()


def _signatures(model: Model) -> Iterator[dict[str, object]]:
    for signature in model.signatures:
        if signature.graph is model.graph:
            yield {
                "key": signature.key,
                "inputs": _numbered(signature.inputs, model.graph.inputs),
                "outputs": _numbered(signature.outputs, model.graph.outputs),
            }


def _numbered(side: Iterable[tuple[str, Value]], values: Sequence[Value]) -> dict[str, int]:
    return {name: values.index(value) for name, value in side if value in values}
