"""Learn levels for weights that layers read as floats: those of operators that no kernel of learned
levels computes. They are learned before all others, which then make up for their errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Op
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.lquantizer.assignment.layer_format import Levels
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import Rows, Sampling, bias_of, groups_of
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.stored_levels import FEW, fit_stored
from luciole.lquantizer.network.layers import Stored
from luciole.lquantizer.network.preparation import Preparation
from luciole.lquantizer.network.sampling import Sampled
from luciole.lquantizer.report import LayerReport, snr_db
from luciole.lquantizer.rewrite.integers import set_bias
from luciole.lquantizer.rewrite.stored_levels import read_stored


def store_weights(prepared: Preparation, records: Records, seed: int) -> dict[str, LayerReport]:
    """Store the weights of the layers that ``find_stored`` listed as codes; returns a report for
    each, by name.
    """
    reports: dict[str, LayerReport] = {}
    for stored in prepared.stored:
        reports |= _learn(prepared, stored, records, seed)
    return reports


def _learn(
    prepared: Preparation, stored: Stored, records: Records, seed: int
) -> dict[str, LayerReport]:
    data = stored.weights.contents
    rows = np.moveaxis(data, stored.axis, 0).reshape(data.shape[stored.axis], -1)
    inputs = _seen(prepared, stored.ops, rows.shape, records, seed)
    moments = None if inputs is None else inputs.moments(len(rows)).astype(np.float64)
    levels = fit_stored(rows, moments, stored.bits, seed)
    error = levels.values() - rows
    result = read_stored(prepared.work.graph, stored.uses, stored.weights, levels, stored.axis)
    if inputs is not None:
        means = inputs.by_group.mean(1)
        means = np.repeat(means, len(rows) // len(means), axis=0)
        _shift_bias(prepared, stored.ops[0], -(error * means).sum(1))
    assert result.producer is not None, "an operator reads the codes"
    decoder, mse = result.producer.op, float(np.mean(error**2))
    return {
        op.name: LayerReport(
            op.name,
            weight_bits=stored.bits,
            weights_mse=mse,
            bytes_before=prepared.sizes[op.name],
            bytes_after=constant_bytes(op) + constant_bytes(decoder),
            way="stored as levels",
            format=str(Levels(stored.bits, None)),
        )
        for op in stored.ops
    }


def _seen(
    prepared: Preparation, ops: Sequence[Op], shape: tuple[int, ...], records: Records, seed: int
) -> Rows | None:
    """Take the rows [groups, r, n] that a layer of several groups meets, None for other layers."""
    op = ops[0]
    if len(ops) > 1 or shape[1] > FEW or not isinstance(op, DepthwiseConv2D | Conv2D):
        return None
    if shape[0] % groups_of(op):
        return None
    sampling = Sampling.of(prepared.count, seed, op)
    front = Front(prepared.work, records, prepared.batch)
    return Sampled.of(front, [op], sampling, masked=False).rows


def _shift_bias(prepared: Preparation, op: Op, shift: Array) -> None:
    """Add to a layer's bias [o], where it has none or a constant one."""
    old = op.given_operands().get("" if op.quant is None else op.quant.bias or "")
    if old is None or old.data is not None:
        present = 0.0 if old is None else bias_of(op)
        set_bias(prepared.work.graph, op, np.asarray(present + shift))


def measure_stored(
    prepared: Preparation, reports: dict[str, LayerReport], records: Records
) -> None:
    """Enter the errors of the layers' outputs in the finished network."""
    ops = [op for stored in prepared.stored for op in stored.ops]
    if not ops:
        return
    values = [op.output for op in ops]
    twins = [prepared.twins[value] for value in values]
    floats_seen = watched(prepared.reference, twins, records, prepared.batch)
    learned_seen = watched(prepared.work, values, records, prepared.batch)
    sums = np.zeros((len(ops), 3))
    for (_, floats), (_, arrays) in zip(floats_seen, learned_seen, strict=True):
        for row, x, y in zip(sums, floats, arrays, strict=True):
            wide = x.astype(np.float64)
            row += np.sum(wide**2), np.sum((wide - y) ** 2), x.size
    for op, (signal, error, count) in zip(ops, sums.tolist(), strict=True):
        reports[op.name].mse = error / count
        reports[op.name].snr_db = snr_db(signal, error)
