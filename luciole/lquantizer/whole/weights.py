"""Store the weights of a float network in fewer bits: what is between operators stays float."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from luciole.interpreter.records import Records, Track, check_records
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.weights import has_weights, stored_constant, weight_constant
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.passes.fuse_quantization import fuse_weights
from luciole.ir.value import Use
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.calibration.rows import Product, weight_rows
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.formats.integers import Integers, balanced, nearest, nearest_blocks
from luciole.lquantizer.network.limits import Limits
from luciole.lquantizer.network.real import check_weights
from luciole.lquantizer.network.recurrent import store_recurrent_weights
from luciole.lquantizer.report import LayerReport
from luciole.lquantizer.rewrite.integers import runs, set_constant, set_weights, weight_slot
from luciole.lquantizer.whole.integer_layers import Known, walk

_Known = dict[tuple[Value, Scheme, str], Value]
"""Readers of stored weights, by the float ones, their storage, and the kind of the layer."""
_BYTE = 8
"""Bits of a weight from which its scale reaches the largest one."""
_WIDE = 128
"""Elements of a table's row from which on its scale and its zero point, 12 bytes, take less than a
tenth of those of 8 bits."""


def learn_weights(
    work: Model,
    schemes: Mapping[Op, Scheme],
    records: Records | None,
    options: UniformOptions,
    track: Track,
) -> dict[Op, LayerReport]:
    """Learn the integers of 4 bit weights, one layer after the other, so that results of layers
    whose tensors stay float stay close, and put them behind a DEQUANTIZE. Nothing is done without
    records, and where weights are to be rounded to the nearest.

    Raises QuantizeError for data that cannot be used.
    """
    graph = work.graph
    chosen = {op: schemes[op] for op in graph.ops if op in schemes and _learns(op, schemes[op])}
    if records is None or options.rounding == "nearest" or not chosen:
        return {}
    check_records(graph, records)
    check_finite(records)
    plain = UniformOptions("dynamic4", options.granularity, options.ranges, seed=options.seed)
    return walk(work, records, chosen, plain, track, Known(Limits(plain))).reports


def _learns(op: Op, types: Scheme) -> bool:
    """Check whether a layer's weights are learned: 8 bits need no learning, and weights that
    several layers share stay shared.
    """
    value = weight_constant(op) if types.learns_weights and isinstance(op, Product) else None
    if value is None or value.dtype != TensorType.FLOAT32 or len(value.users) > 1:
        return False
    return value.data is not None and bool(np.isfinite(value.data).all())


def store_weights(
    graph: Graph,
    schemes: Mapping[Op, Scheme],
    options: UniformOptions,
    learned: Container[Op] = (),
) -> dict[Op, LayerReport]:
    """Store the weights of layers that have schemes as integers or in half precision, and report on
    each; layers read integers themselves where the scheme lets them, the ``learned`` ones, too.

    Raises QuantizeError for weights that are no numbers.
    """
    reports, known = {}, _Known()
    for op in [op for op in graph.ops if op in schemes]:
        value = stored_constant(op)
        if value is None or value.dtype != TensorType.FLOAT32:
            continue
        reports[op] = LayerReport(op.name, None, schemes[op].weight_bits)
        reports[op].bytes_before = constant_bytes(op)
        reports[op].skipped = _too_large(op, value, schemes[op])
        if reports[op].skipped is None:
            _store_once(graph, op, value, schemes[op], options, known)
    read = {op for op, types in schemes.items() if _may_read_codes(op, types)}
    reports |= store_recurrent_weights(graph, read)
    stored = reports.keys()
    fuse_weights(graph, lambda op: op in read and (op in stored or op in learned) and runs(op))
    return reports


def _may_read_codes(op: Op, types: Scheme) -> bool:
    """Check whether a layer's kernel in TFLite takes a scheme's weights under real numbers."""
    if op.quant is not None and op.quant.table is not None:
        return True
    takes_short = op.quant is None or op.quant.since.hybrid_int4
    return not types.explicit and (takes_short or types.weights != TensorType.INT4)


def _too_large(op: Op, value: Value, types: Scheme) -> str | None:
    """Return the reason why a layer's weights stay as they are, None where there is none. Raises
    QuantizeError where one is no number.
    """
    check_weights(op)
    peak, most = float(np.abs(value.contents).max(initial=0)), float(np.finfo(np.float16).max)
    if not np.isfinite(peak):
        return "its rows are not all finite"
    if types.weights == TensorType.FLOAT16 and peak > most:
        return f"weights reach {peak:g}, half precision {most:g}"
    return None


def _store_once(
    graph: Graph, op: Op, value: Value, types: Scheme, options: UniformOptions, known: _Known
) -> None:
    """Store weights, or share the stored weights of another layer of its kind."""
    slot = op.operands.index(value)
    key = (value, types, op.kind)
    if key in known:
        op.set_operand(slot, known[key])
        return
    _store(graph, op, value, types, options)
    known[key] = op.required(slot)


def _store(graph: Graph, op: Op, value: Value, types: Scheme, options: UniformOptions) -> None:
    if types.weights == TensorType.FLOAT16:
        use = Use(op, op.operands.index(value))
        set_constant(graph, use, value.contents.astype(np.float16), None)
        return
    rows, is_layer = weight_rows(op), has_weights(op)
    channels = options.channels(types) and (is_layer or rows.shape[1] >= _WIDE)
    bias = np.zeros(len(rows), np.float32)  # which stays as it is
    searched = options.ranges == "mse" and types.weight_bits < _BYTE
    if types.block is None:
        integers = nearest(rows, bias, types.most, channels=channels, searched=searched)
    else:
        integers = nearest_blocks(rows, bias, types.most, types.block, searched=searched)
    codes = integers.codes
    if options.rounding != "nearest" and is_layer:
        codes = _balanced(integers, rows, types, _channels(op, value))
    set_weights(graph, op, codes, integers.scales, types.weights)


def _balanced(integers: Integers, weights: Array, types: Scheme, channels: int) -> Array:
    """Move codes so that rounding errors of weights [o, n] even out, those of each block alone."""
    if not weights.size:
        return integers.codes
    size = types.block or weights.shape[1]
    codes, rows = integers.codes.reshape(-1, size), weights.reshape(-1, size)
    steps = rows / integers.scales.reshape(-1, 1)
    within = channels if types.block is None else size
    return balanced(codes, steps, within, types.most).reshape(weights.shape)


def _channels(op: Op, weights: Value) -> int:
    """Count the input channels that an output's weights run over inside."""
    rest = list(weights.dims)
    del rest[weight_slot(op)[2]]
    return 1 if isinstance(op, DepthwiseConv2D) or not rest else rest[-1]
