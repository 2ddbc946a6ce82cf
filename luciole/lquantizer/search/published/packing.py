"""Store weights of few bits in as few: 4 as INT4, 2 and 3 as codes of levels, unpacked when a file
is loaded, so that integer kernels compute with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.levelsdecode import scaled_levels
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import Affine
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.rewrite.integers import runs
from luciole.lquantizer.rewrite.stored_levels import read_stored

_FOUR_BITS = 4
_BASES = {2: (0.5, 0.5), 3: (0.5, 1.0, 1.5)}
"""Of each number of bits a basis whose signed sums are all integers from -1 to 1, or -3 to 3."""


def packed(model: Model, widths: Mapping[str, int], size: Callable[[Model], int]) -> Model:
    """Store weights of at most 4 bits, by the names of layers, in as few as make the file smaller;
    the integers stay the same.
    """
    narrow = dict(_narrow(model.graph, widths))
    for value in narrow:
        _as_int4(value)
    best = size(model)
    for name, bits in {value.name: bits for value, bits in narrow.items()}.items():
        if bits not in _BASES:
            continue
        smaller = model.clone()
        _as_levels(smaller.graph, name, bits)
        if (smaller_size := size(smaller)) < best:
            model, best = smaller, smaller_size
    return model


def _narrow(graph: Graph, widths: Mapping[str, int]) -> Iterator[tuple[Value, int]]:
    """Yield constants of 8 bits all of whose numbers keep to fewer, and to how many."""
    for op in graph.ops:
        value = _codes(op)
        bits = max([widths.get(user.name, 8) for user in _layers(value)], default=8)
        if value is None or value.data is None or bits > _FOUR_BITS:
            continue
        most = int(np.abs(value.data.astype(np.int16)).max(initial=0))
        if value.dtype == TensorType.INT8 and most < 2 ** (bits - 1):
            yield value, bits


def _codes(op: Op) -> Value | None:
    """Find the integers of a layer's weights, be they read as floats."""
    value = None if op.quant is None else op.given_operands().get(op.quant.weight or "")
    producer = None if value is None else value.producer
    return producer.op.input if producer and isinstance(producer.op, Dequantize) else value


def _layers(codes: Value | None) -> Iterator[Op]:
    """Yield the layers that read integers, be it as floats."""
    for use in [] if codes is None else codes.users:
        if isinstance(use.op, Dequantize):
            yield from (user.op for user in use.op.output.users)
        else:
            yield use.op


def _as_int4(value: Value) -> None:
    """Store integers in 4 bits where all that read them have kernels for these."""
    codes = value.contents
    value.make_constant(codes, TensorType.INT4)
    if not all(runs(use.op) for use in value.users):
        value.make_constant(codes, TensorType.INT8)


def _as_levels(graph: Graph, name: str, bits: int) -> None:
    """Replace the integers of a name by a LevelsDecode and a CAST with their scales."""
    value = next(v for v in graph.values if v.name == name and v.data is not None)
    affine, users = Affine.of(value, "the weights"), list(value.users)
    rows = np.moveaxis(value.contents, affine.axis, 0)
    rows = rows.reshape(len(rows), -1).astype(np.float64)
    basis = np.array([_BASES[bits]], np.float32)
    stored = StoredLevels(scaled_levels(basis, None, len(rows)).encode(rows), basis)
    decoded = read_stored(graph, users, value, stored, affine.axis)
    cast = Cast(decoded, in_data_type=TensorType.FLOAT32, out_data_type=TensorType.INT8)
    graph.insert_before(users[0].op, cast, graph.unique_name(f"{name}/integers"))
    cast.output.quantization = value.quantization
    for op, slot in users:
        op.set_operand(slot, cast.output)
    remove_dead(graph)
