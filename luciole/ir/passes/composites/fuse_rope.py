"""Put ROPE together."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.rope import Rope
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of, is_plain, made_by
from luciole.ir.value import Value
from luciole.schema.enums import RoPEMode


@rewrite(Add, makes=(Rope,), on_request=True)
def fuse_rope(graph: Graph, op: Add) -> bool:
    """x cos + CONCATENATION(-x[half:], x[:half]) sin -> ROPE(x, sin, cos), along the last axis."""
    if not is_float(op.output) or len(op.output.shape) != 4 or not is_plain(op):
        return False
    for straight, crossed in ((op.x, op.y), (op.y, op.x)):
        first, second = made_by(straight, Mul), made_by(crossed, Mul)
        if first is None or second is None or not (is_plain(first) and is_plain(second)):
            continue
        for turned, sine in ((second.x, second.y), (second.y, second.x)):
            x = _turned(turned)
            cosine = first.y if first.x is x else first.x if first.y is x else None
            if x is not None and cosine is not None and _fits(x, sine, cosine, op.output):
                become(graph, op, Rope(x, sine, cosine, mode=RoPEMode.GPT_NEOX))
                return True
    return False


def _fits(x: Value, sine: Value, cosine: Value, result: Value) -> bool:
    tables = all(table.shape[-1:] == x.shape[-1:] for table in (sine, cosine))
    return tables and x.shape == result.shape


def _turned(value: Value) -> Value | None:
    """Find x where a value is (-x[half:], x[:half]) of the last axis."""
    joined = made_by(value, Concatenation)
    if joined is None or len(joined.inputs) != 2 or not is_plain(joined):
        return None
    if joined.axis not in (-1, len(value.shape) - 1):
        return None
    negative = made_by(joined.inputs[0], Neg)
    last, first = (None if negative is None else _half(negative.x)), _half(joined.inputs[1])
    if last is None or first is None or last[0] is not first[0]:
        return None
    return first[0] if (first[1], last[1]) == (0, 1) else None


def _half(value: Value) -> tuple[Value, int] | None:
    """Find the tensor of which a value is the first (0) or second (1) half of the last axis."""
    producer = value.producer
    op = producer.op if producer is not None else None
    if isinstance(op, Split) and op.num_splits == 2 and producer is not None:
        along = integers_of(op.split_dim)
        last = along is not None and along[0] % len(op.input.shape) == len(op.input.shape) - 1
        return (op.input, producer.slot) if last else None
    if not isinstance(op, Slice | StridedSlice):
        return None
    whole, part, begin = op.input.shape, value.shape, integers_of(op.begin)
    if None in whole or whole[:-1] != part[:-1] or begin is None or len(begin) != len(whole):
        return None
    if isinstance(op, StridedSlice) and not _is_plain_slice(op):
        return None
    half, masked = (whole[-1] or 0) // 2, isinstance(op, StridedSlice) and op.begin_mask >> 3 & 1
    start = 0 if masked else begin[-1] % (whole[-1] or 1)
    return (op.input, start // half) if part[-1] == half and half and start in (0, half) else None


def _is_plain_slice(op: StridedSlice) -> bool:
    """Return whether a slice has an entry for each axis and takes every element from its begin."""
    special = op.new_axis_mask or op.shrink_axis_mask or op.ellipsis_mask
    return not special and integers_of(op.strides) == [1] * len(op.input.shape)
