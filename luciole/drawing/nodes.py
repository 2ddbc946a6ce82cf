"""Operators, inputs and outputs as the boxes of a drawing and as what the page says of them."""

from __future__ import annotations

from typing import Any

from luciole.drawing.layout import Box
from luciole.drawing.palette import category
from luciole.drawing.text import dims, fitted, shown_name, width_of
from luciole.ir import Op, UnknownOp, Value
from luciole.ir.analysis.widths import Bits, bits_of
from luciole.ir.graph import Graph
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected, LQLayer
from luciole.ir.text.common import code_of, one_line, scalar, shortened
from luciole.ir.text.options import options_by_name
from luciole.ir.value import element_count
from luciole.lquantizer.assignment.format_of import word_of
from luciole.schema.enums import ActivationFunctionType

Json = dict[str, Any]

HEADER, ROW, BAND, PADDING = 26.0, 17.0, 20.0, 6.0
"""Heights of a box's parts: title, a constant, the fused activation, room around the constants."""

MARGIN = 10.0
MOST_ROWS = 8
"""Constants that a box shows."""

NARROWEST, WIDEST = 90.0, 260.0
LABEL = 11.0
"""Letter size of an edge's label."""


def op_json(op: Op, index: int) -> Json:
    """Describe an operator: what it is, how it is configured, and its box."""
    bits = bits_of(op)
    title = one_line(op.kind, 40) if isinstance(op, UnknownOp) else type(op).__name__
    facts: Json = {
        "what": "op",
        "index": index,
        "title": title,
        "kind": one_line(op.kind, 80),
        "category": category(op),
        "name": shown_name(op.name),
        "version": op.version,
        "attributes": _attributes(op),
        "rows": _rows(op, bits),
        "bytes": _constant_bytes(op),
    }
    if bits is not None:
        facts |= {"bits": list(bits), "badge": badge(bits)}
    if word := word_of(op):
        facts["badge"] = word
    activation = _activation(op)
    if activation:
        facts["activation"] = activation
    return facts | _what_it_is(op)


def _what_it_is(op: Op) -> Json:
    """Return the name of a custom operator, or what the class of a known one says of it."""
    if isinstance(op, UnknownOp):
        custom = code_of(op)[1]
        return {"custom_code": one_line(custom, 80)} if custom else {}
    text = type(op).__doc__
    return {"help": " ".join(text.split())} if text and text != Op.__doc__ else {}


def end_json(value: Value, what: str, index: int) -> Json:
    """Describe an input or output of a graph."""
    return {
        "what": what,
        "index": index,
        "title": shown_name(value.name),
        "kind": what,
        "category": "io",
        "name": shown_name(value.name),
        "attributes": [],
        "rows": [],
        "bytes": 0,
    }


def badge(bits: Bits) -> str:
    """Write ``W3 A3``: bits of weights and of activations that have no word."""
    return f"W{bits.weights}" + ("" if bits.input is None else f" A{bits.input}")


def box_of(node: Json, label: str) -> Box:
    """Return the size of a node's box, and of the label below it; texts that are too long are cut
    off.
    """
    beside = width_of(node["badge"], 10, bold=True) + 20 if "badge" in node else 0.0
    most = WIDEST - 2 * MARGIN
    node["shown"] = fitted(node["title"], most - beside)
    rows = [(name, fitted(text, most - width_of(name, bold=True))) for name, text in node["rows"]]
    node["rows"] = [list(row) for row in rows]
    widths = [width_of(node["shown"], bold=True) + beside]
    widths += [width_of(name, bold=True) + 8 + width_of(text) for name, text in rows]
    widths.append(width_of(node.get("activation", "")))
    width = min(max(max(widths) + 2 * MARGIN, NARROWEST), WIDEST)
    height = HEADER + (len(rows) * ROW + PADDING if rows else 0)
    height += BAND if "activation" in node else 0
    node["size"] = [round(width), round(height)]
    return Box(round(width), round(height), width_of(label, LABEL) + 8 if label else 0.0, LABEL + 3)


def _attributes(op: Op) -> list[list[Any]]:
    """List each attribute's name, value and whether it is the default."""
    if isinstance(op, UnknownOp):
        return [[name, _text(value), False] for name, value in options_by_name(op).items()]
    return [
        [f.schema_name, _text(value := op.attributes()[f.name]), bool(value == f.default)]
        for f in op.attr_fields()
    ]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value, 200)
    if isinstance(value, Graph):
        return one_line(value.name or "(no name)", 200)
    if isinstance(value, tuple) and any(isinstance(graph, Graph) for graph in value):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, float | int):
        return scalar(value)
    if isinstance(value, dict):
        return ", ".join(f"{one_line(str(k), 80)}: {_text(v)}" for k, v in value.items())
    if value is None:
        return ""
    try:
        return shortened(value, 16)
    except (TypeError, ValueError):
        return one_line(str(value), 200)


def _rows(op: Op, bits: Bits | None) -> list[list[str]]:
    """Return the constants that a box shows; those of learned layers as the weights they stand
    for.
    """
    if isinstance(op, LQLayer | BCQFullyConnected) and bits is not None:
        shape = _learned_shape(op)
        rows = [["weights", f"{shape} at {bits.weights} bit" if shape else f"{bits.weights} bit"]]
        return rows + ([] if op.bias is None else [["bias", _extent(op.bias)]])
    constants = [(n, v) for n, v in op.given_operands().items() if v.is_constant]
    rows = [[name, _constant(value)] for name, value in constants[:MOST_ROWS]]
    left_out = len(constants) - MOST_ROWS
    return [*rows, ["…", f"{left_out} more"]] if left_out > 0 else rows


def _learned_shape(op: Op) -> str:
    if isinstance(op, LQFullyConnected):
        return dims((op.weights_scales.shape[0], op.hidden_size))
    if isinstance(op, LQConv2D) and len(op.weights_binary.shape) == 5:
        o, _, height, width, _ = op.weights_binary.shape
        return dims((o, height, width, op.input_channels))
    return ""


def _constant(value: Value) -> str:
    """Return a single number or a short shape vector by its value, everything else by its
    extent.
    """
    count = element_count(value.dims)
    if count == 1 or (count <= 4 and value.dtype.name.startswith("INT")):
        try:
            data = value.data
        except ValueError:
            data = None
        if data is not None and data.dtype.kind in "iuf":
            shown = ", ".join(f"{x:.4g}" for x in data.reshape(-1).tolist())
            return f"= {shown}"
    return _extent(value)


def _extent(value: Value) -> str:
    return f"⟨{dims(value.shape)}⟩"


def _activation(op: Op) -> str | None:
    fused = op.attributes().get("activation") if not isinstance(op, UnknownOp) else None
    if isinstance(fused, ActivationFunctionType) and fused != ActivationFunctionType.NONE:
        return fused.name
    return None


def _constant_bytes(op: Op) -> int:
    buffers = {id(v.buffer): v.buffer for v in op.operands if v is not None and v.is_constant}
    return sum(len(b) for b in buffers.values() if b is not None)
