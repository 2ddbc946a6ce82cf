"""Write how an operator is configured: attributes, options table, custom options, as text and by
name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from luciole.ir.fields import Field
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.text.common import Numbering, hex_bytes, listed, one_line, scalar, shortened
from luciole.ir.text.flexbuffer import read_map, value_text
from luciole.ir.unknown_op import UnknownOp
from luciole.schema.enums import BuiltinOperator, CustomOptionsFormat
from luciole.schema.table import Table

INDENT = "    "

_SPELLED = frozenset(
    {
        "adjoint_lhs",
        "adjoint_rhs",
        "align_corners",
        "half_pixel_centers",
        "NarrowRange",
        "approximate",
    }
)
"""Labels whose bools ONE prints as true and false; it prints all others as 1 and 0."""


def option_lines(op: Op, numbers: Numbering) -> Iterator[str]:
    """Write the lines between an operator's name and its inputs in ONE's dump; none if nothing is
    to say.

    An attribute with a ``dump`` label is one that ONE prints: it is always there. One without is
    shown when it is not the default.
    """
    if isinstance(op, UnknownOp):
        yield from _unknown_lines(op)
        return
    changed = {f.name for f in op.attr_fields() if getattr(op, f.name) != f.default}
    if not op.has_options and not changed:
        return
    shown = [f for f in op.attr_fields() if f.dump is not None or f.name in changed]
    if shown:
        yield INDENT + "".join(_attribute(op, f, numbers) for f in shown)


def _attribute(op: Op, field: Field, numbers: Numbering) -> str:
    value = getattr(op, field.name)
    if isinstance(value, bool) and field.label in _SPELLED:
        return f"{field.label}({'true' if value else 'false'}) "
    return f"{field.label}({_text(value, numbers)}) "


def _text(value: Any, numbers: Numbering) -> str:
    if value is None or isinstance(value, str):
        return one_line(value or "")
    if isinstance(value, Graph):
        return str(numbers.graph(value))
    if isinstance(value, tuple) and any(isinstance(graph, Graph) for graph in value):
        value = tuple(map(numbers.graph, value))
    return listed(value) if isinstance(value, tuple) else scalar(value)


def _unknown_lines(op: UnknownOp) -> Iterator[str]:
    for table in (op.options_table, op.options_2):
        if table is not None and table.fields:
            pairs = ((f.name, _stored(getattr(table, f.name))) for f in table.fields)
            yield INDENT + "".join(f"{name}({value}) " for name, value in pairs)
    if op.number == BuiltinOperator.CUSTOM or op.custom_options is not None:
        yield _custom_line(op)


def _stored(value: Any) -> str:
    if value is None or isinstance(value, np.ndarray):
        return shortened(value)
    return one_line(value) if isinstance(value, str) else scalar(value)


def _custom_line(op: UnknownOp) -> str:
    """Write the line that ONE prints for custom options, with the bytes where they are no
    FlexBuffer map.
    """
    raw = custom_bytes(op)
    if op.custom_options_format != CustomOptionsFormat.FLEXBUFFERS:
        return f"{INDENT}Unknown custom option format"
    if not raw:
        return "No attrs found."
    entries = read_map(raw)
    if entries is None:
        return f"{INDENT}custom_options ({len(raw)}) {hex_bytes(raw)}"
    pairs = ((one_line(key), one_line(value_text(value))) for key, value in entries.items())
    return INDENT + "".join(f"{key}({value}) " for key, value in pairs)


def custom_bytes(op: UnknownOp) -> bytes:
    """Read the custom options as they are in the file, empty when there are none."""
    options = op.custom_options
    if options is None:
        return b""
    return options.tobytes() if isinstance(options, np.ndarray) else bytes(options)


def options_by_name(op: Op) -> dict[str, Any]:
    """List every option under the schema's name for it, values as the operator has them.

    Custom options are under ``custom_options`` when they are a FlexBuffer map, else their bytes are
    under ``custom_options_raw``.
    """
    if not isinstance(op, UnknownOp):
        return {f.schema_name: getattr(op, f.name) for f in op.attr_fields()}
    options: dict[str, Any] = {}
    for table in (op.options_table, op.options_2):
        options.update(_fields(table))
    raw = custom_bytes(op)
    if raw:
        entries = (
            read_map(raw) if op.custom_options_format == CustomOptionsFormat.FLEXBUFFERS else None
        )
        options.update(
            {"custom_options_raw": raw} if entries is None else {"custom_options": entries}
        )
    return options


def _fields(table: Table | None) -> dict[str, Any]:
    return {} if table is None else {f.name: getattr(table, f.name) for f in table.fields}
