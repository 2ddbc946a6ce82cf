"""Functions: what operators consist of, by ONNX's own definitions or by those of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import STANDARD
from luciole.ir import Value
from luciole.schema.onnx_dialect import NUMBERS

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto, TypeProto
    from onnx.defs import OpSchema


@dataclass
class Body:
    """Nodes that a node consists of; ``defaults`` are attributes that the node may leave out."""

    proto: FunctionProto
    defaults: Mapping[str, AttributeProto]

    @property
    def inputs(self) -> list[str]:
        """The names of the operands."""
        return list(self.proto.input)

    @property
    def outputs(self) -> list[str]:
        """The names of the results."""
        return list(self.proto.output)

    @property
    def opsets(self) -> dict[str, int]:
        """Versions of the operators by their domain."""
        return versions(self.proto.opset_import)

    def nodes(self, node: Node, operands: Mapping[str, Value]) -> Iterator[NodeProto]:
        """Yield the nodes with the attributes that a node gives, and without operands that it
        leaves out.
        """
        from onnx import NodeProto

        attributes = dict(self.defaults)
        attributes |= {a.name: a for a in (node.proto.attribute if node.proto else ())}
        absent = set(self.inputs) - set(operands)
        for inner in self.proto.node:
            copy = NodeProto()
            copy.CopyFrom(inner)
            _fill(copy, attributes)
            for slot, name in enumerate(copy.input):
                if name in absent:
                    copy.input[slot] = ""
            yield copy


def _fill(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> None:
    """Replace references to a function's attributes by these, also in graphs inside."""
    kept = []
    for attribute in node.attribute:
        replacement = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else None
        name = attribute.name
        if attribute.ref_attr_name and replacement is None:
            continue
        if replacement is not None:
            attribute.CopyFrom(replacement)
            attribute.name = name
        for inner in attribute.g.node:
            _fill(inner, attributes)
        kept.append(attribute)
    if len(kept) < len(node.attribute):
        copies = [_copied(attribute) for attribute in kept]
        del node.attribute[:]
        node.attribute.extend(copies)


def _copied(attribute: AttributeProto) -> AttributeProto:
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    return copy


class Functions:
    """The functions that a model has, and functions of ONNX's operators."""

    def __init__(self, own: Iterable[FunctionProto] = ()) -> None:
        self._own = {_key(f.domain, f.name, f.overload): f for f in own}

    def body(self, node: Node) -> Body | None:
        """Find the nodes that a node consists of, None where it is not a function."""
        overload = node.proto.overload if node.proto is not None else ""
        own = self._own.get(_key(node.domain, node.kind, overload))
        if own is not None:
            return Body(own, {a.name: a for a in own.attribute_proto})
        return _defined(node)


def _key(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return "" if domain in STANDARD else domain, name, overload


def versions(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Read versions of operators by their domain."""
    return {"" if o.domain in STANDARD else o.domain: o.version for o in imports}


def _defined(node: Node) -> Body | None:
    """Find the body that ONNX itself gives an operator."""
    from onnx import defs

    try:
        schema = defs.get_schema(node.kind, node.opset, node.domain)
    except (defs.SchemaError, TypeError):  # there is none, or the name is no text
        return None
    _check_types(schema, node)
    body: FunctionProto | None = None
    if schema.has_function:  # type: ignore[attr-defined]  # onnx's types leave it out
        body = schema.function_body
    elif schema.has_context_dependent_function:  # type: ignore[attr-defined]
        body = _of_types(schema, node)
    if body is None or not body.node:
        return None
    defaults = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}
    return Body(body, defaults)


def _check_types(schema: OpSchema, node: Node) -> None:
    """Refuse attributes of another type than ONNX says, which its bodies would read as 0. Raises
    RefusedError.
    """
    for attribute in node.proto.attribute if node.proto else ():
        if attribute.name not in schema.attributes:
            continue
        kind = attribute.AttributeType.Name(attribute.type)
        known = str(schema.attributes[attribute.name].type).rpartition(".")[2]
        if kind not in ("UNDEFINED", known):
            raise RefusedError(f"attribute {attribute.name} is {kind}, not {known}")


def _of_types(schema: object, node: Node) -> FunctionProto | None:
    """Ask for a body that depends on the types of operands."""
    from onnx import FunctionProto

    if node.proto is None:
        return None
    types = [_type(value).SerializeToString() for value in node.operands]
    function = FunctionProto()
    try:
        serialized = schema.get_context_dependent_function(node.proto.SerializeToString(), types)  # type: ignore[attr-defined]  # its class is not in onnx's types
    except Exception as error:  # whatever ONNX's C++ code raises
        raise RefusedError(f"ONNX gives no body for it: {error}") from None
    function.ParseFromString(serialized)
    return function


def _type(value: Value | None) -> TypeProto:
    from onnx import TypeProto, helper

    if value is None or value.dtype not in NUMBERS:
        return TypeProto()
    return helper.make_tensor_type_proto(NUMBERS[value.dtype], value.shape)
