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
    "reduce": "#0f6b73",
    "arithmetic": "#4d5a6b",
    "shape": "#76584c",
    "quantization": "#7a4fa3",
    "control": "#8a6d00",
    "other": "#454b54",
    "io": "#e4e7eb",
}

PLAIN = "#6e7783"
"""Where a colour mode says nothing about an operator."""

_FILES = {
    "activation": ("activations", "gelu", "leaky_relu", "prelu", "softmax"),
    "pool": ("pool_2d", "reduce_window"),
    "reduce": (
        "arg_min_max",
        "cumsum",
        "instance_norm",
        "l2_normalization",
        "local_response_normalization",
        "reduce",
        "rms_norm",
        "segment_sum",
        "unsorted_segment",
    ),
    "arithmetic": (
        "add_n",
        "comparisons",
        "complex_parts",
        "elementwise_binary",
        "elementwise_unary",
        "logical",
        "select",
        "stablehlo_elementwise",
    ),
    "quantization": ("cast", "fake_quant", "minifloat", "quantize"),
}
_BY_FILE = {file: category for category, files in _FILES.items() for file in files}
"""Categories by file of ``ir/ops``, where what an operator says of itself does not tell. What
remains moves values about, unless it is behind CUSTOM.
"""


def category(op: Op) -> str:
    """Find the kind of an operator: a key of CATEGORIES."""
    if isinstance(op, UnknownOp):
        return "other"
    if any(field.is_graph for field in op.attr_fields()):
        return "control"
    if has_weights(op) or type(op).macs is not Op.macs:
        return "layer"
    remaining = "other" if op.custom_code else "shape"
    return _BY_FILE.get(type(op).__module__.rpartition(".")[2], remaining)


def bits_colour(bits: int | None) -> str:
    """Return the colour of a weight width."""
    if bits is None:
        return PLAIN
    return next((colour for most, colour in BITS.items() if bits <= most), BITS[32])
