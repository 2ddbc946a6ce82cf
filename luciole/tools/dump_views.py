"""Single questions about a model, with the answers that ONE's circle-inspect prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from luciole.ir import Model, Value
from luciole.ir.graph import all_ops
from luciole.ir.quantization import Affine
from luciole.ir.text.common import Numbering, one_line, utf8
from luciole.ir.text.plain import jsonable
from luciole.ir.value import shape_text
from luciole.tools.common import console

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")


@dataclass
class Answer:
    """Lines for people and scripts (or a table, its headings first), and the same for JSON."""

    content: Any
    lines: Sequence[str] = ()
    table: list[tuple[str, ...]] | None = None


def _operators(model: Model) -> Answer:
    kinds = [op.kind for op in all_ops(model.graphs)]
    return Answer([utf8(kind) for kind in kinds], [one_line(kind) for kind in kinds])


def _op_version(model: Model) -> Answer:
    """Find the highest version of each kind, by name."""
    versions: dict[str, int] = {}
    for op in all_ops(model.graphs):
        versions[op.kind] = max(versions.get(op.kind, 0), op.version)
    listed = sorted(versions.items())
    return Answer({utf8(k): v for k, v in listed}, [f"{one_line(k)},{v}" for k, v in listed])


def _conv2d_weight(model: Model) -> Answer:
    """Name the source of a convolution's weights: ``CONST``, or the operator that computes them;
    ``?`` where there is none.
    """
    pairs = [
        (op.kind, _maker(op.operands[1] if len(op.operands) > 1 else None))
        for op in all_ops(model.graphs)
        if op.kind in _CONVOLUTIONS
    ]
    return Answer([{"kind": k, "weight": w} for k, w in pairs], [f"{k},{w}" for k, w in pairs])


def _maker(value: Value | None) -> str:
    if value is None:
        return "?"
    if value.producer is not None:
        return one_line(value.producer.op.kind)
    return "CONST" if value.buffer is not None and len(value.buffer) else "?"


def _values(model: Model) -> Iterator[Value]:
    for graph in model.graphs:
        yield from graph.values


def _tensor_dtype(model: Model) -> Answer:
    pairs = [(value.name, value.dtype.name) for value in _values(model)]
    content = [{"name": utf8(name), "dtype": dtype} for name, dtype in pairs]
    return Answer(content, [f"{one_line(name)} {dtype}" for name, dtype in pairs])


def _tensor_shape(model: Model) -> Answer:
    """Write -1 for an unknown extent."""
    values = list(_values(model))
    shapes = [tuple(-1 if n is None else n for n in value.shape) for value in values]
    pairs = list(zip(values, shapes, strict=True))
    content = [{"name": utf8(value.name), "shape": list(shape)} for value, shape in pairs]
    return Answer(content, [f"{one_line(v.name)} {shape_text(shape)}" for v, shape in pairs])


def _constants(model: Model) -> Answer:
    names = [v.name for v in _values(model) if v.is_constant]
    return Answer([utf8(name) for name in names], [one_line(name) for name in names])


def _tensors(model: Model) -> Answer:
    """List every tensor, names behind all else: long ones push nothing off the screen."""
    numbers = Numbering(model)
    rows: list[tuple[str, ...]] = [("name", "tensor", "type", "shape", "bytes", "quantization")]
    content = []
    for graph in model.graphs:
        for value in graph.values:
            place = f"T({numbers.graph(graph)}:{numbers.tensor(value)})"
            size = 0 if value.buffer is None else len(value.buffer)
            shown = console.size_text(size) if size else _role(value)
            row = (one_line(value.name), place, value.dtype.name, shape_text(value.shape), shown)
            rows.append((*row, _quantization(value)))
            content.append(_tensor_json(value, place, size))
    return Answer(content, table=[(*row[1:], row[0]) for row in console.fitted(rows, whole=True)])


def _tensor_json(value: Value, place: str, size: int) -> dict[str, Any]:
    return {
        "tensor": place,
        "name": utf8(value.name),
        "dtype": value.dtype.name,
        "shape": jsonable(value.shape),
        "bytes": size,
        "quantization": _quantization(value) or None,
    }


def _role(value: Value) -> str:
    if value.is_input:
        return "input"
    if value.is_variable:
        return "variable"
    return "output" if value.is_output else ""


def _quantization(value: Value) -> str:
    """Return scale and zero point, or how many there are and along which axis."""
    affine = Affine.given(value)
    if affine is None:
        return ""
    scales, points = affine.parameters
    if len(scales) > 1:
        return f"{len(scales)} scales, axis {affine.axis}"
    zero = int(points[0])
    shifted = f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q"
    return f"{scales[0]:.4g} {shifted}"


def _signatures(model: Model) -> Answer:
    lines, content = [], []
    for signature in model.signatures:
        sides = {"inputs": signature.inputs, "outputs": signature.outputs}
        lines.append(one_line(signature.key))
        for side, entries in sides.items():
            lines += [f"  {side[:-1]:<6}  {one_line(n)}: {_typed(v)}" for n, v in entries]
        content.append(
            {
                "key": utf8(signature.key),
                "subgraph": model.graphs.index(signature.graph),
                **{s: [_argument(n, v) for n, v in entries] for s, entries in sides.items()},
            }
        )
    return Answer(content, lines or ["no signatures"])


def _argument(name: str, value: Value) -> dict[str, Any]:
    return {
        "name": utf8(name),
        "tensor": utf8(value.name),
        "dtype": value.dtype.name,
        "shape": jsonable(value.shape),
    }


def _typed(value: Value) -> str:
    return f"{value.dtype.name.lower()}{shape_text(value.shape)} {one_line(value.name)!r}"


VIEWS: dict[str, Callable[[Model], Answer]] = {
    "operators": _operators,
    "op-version": _op_version,
    "conv2d-weight": _conv2d_weight,
    "tensors": _tensors,
    "tensor-dtype": _tensor_dtype,
    "tensor-shape": _tensor_shape,
    "constants": _constants,
    "signatures": _signatures,
}
"""Answers by the name of the option that asks."""
