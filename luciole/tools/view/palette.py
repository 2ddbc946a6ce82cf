"""Colours that mean something, the same in the page and in the SVG file."""

from __future__ import annotations

from luciole.ir import Op, UnknownOp
from luciole.ir.analysis.weights import has_weights

BITS = {
    1: "#8e24aa",
    2: "#5546c4",
    3: "#1c63c9",
    4: "#00796b",
    8: "#a15c00",
    16: "#b3421d",
    32: "#37424f",
}
"""Weight bits; what lies between two entries has the colour of the wider one. White letters are
readable on all of them (contrast above 4.5).
"""

CATEGORIES = {
    "layer": "#2f5d9b",
    "activation": "#96382c",
    "pool": "#3b7048",
    "reduce": "#3b7048",
    "arithmetic": "#4d5a6b",
    "shape": "#76584c",
    "quantization": "#7a4fa3",
    "control": "#8a6d00",
    "other": "#454b54",
    "io": "#e4e7eb",
}

PLAIN = "#6e7783"
"""Where a colour mode says nothing about an operator."""

_BY_FILE = {
    "activations": "activation",
    "gelu": "activation",
    "leaky_relu": "activation",
    "prelu": "activation",
    "softmax": "activation",
    "pool_2d": "pool",
    "reduce": "reduce",
    "elementwise_binary": "arithmetic",
    "elementwise_unary": "arithmetic",
    "quantize": "quantization",
    "cast": "quantization",
    "minifloat": "quantization",
    "batch_matmul": "layer",
    "bcq_fully_connected": "layer",
    "unidirectional_sequence_lstm": "layer",
}
"""Categories by file of ``ir/ops``; an operator with weights to quantize is a layer wherever it is,
and what remains moves values about, unless it is behind CUSTOM.
"""


def category(op: Op) -> str:
    """Find what an operator is for: a key of CATEGORIES."""
    if isinstance(op, UnknownOp):
        return "control" if op.kind in ("IF", "WHILE", "CALL", "CALL_ONCE") else "other"
    if has_weights(op):
        return "layer"
    remaining = "other" if op.custom_code else "shape"
    return _BY_FILE.get(type(op).__module__.rpartition(".")[2], remaining)


def bits_colour(bits: int | None) -> str:
    """Return the colour of a weight width."""
    if bits is None:
        return PLAIN
    return next((colour for most, colour in BITS.items() if bits <= most), BITS[32])
