"""Measure how close the layers of a finished network are to the float network's, on held-back
records.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.split_activation import split_activation
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.calibration.watch import batch_for, watched
from luciole.lquantizer.judging.records import FEW_JUDGES, judging_places, taken
from luciole.lquantizer.network.branches import floors
from luciole.lquantizer.network.result import Trace
from luciole.lquantizer.report import Report, snr_db


def add_stage(
    report: Report,
    stage: str,
    model: Model,
    quantized: Model,
    traces: Mapping[str, Trace],
    records: Records,
) -> None:
    """Enter another stage into a report, and its signal-to-noise ratios as each layer's: of a later
    state of a quantized model, compared with the float model as the fit does it.
    """
    count = len(next(iter(records.values())))
    judging = taken(records, judging_places(count, FEW_JUDGES))
    for layer in report.layers:
        if layer.name in traces:
            part, y = _judged(model, quantized, traces[layer.name], judging)
            layer.mse = part.error(y)
            layer.snr_db = snr_db(part.signal, layer.mse)
            layer.stages[stage] = layer.snr_db


def _judged(model: Model, quantized: Model, trace: Trace, records: Records) -> tuple[Part, Array]:
    """Run both networks: a layer's float results with the floors under them, and its learned ones:
    [r, o].
    """
    reference, work = model.clone(), quantized.clone()
    unroll_unidirseqlstm(reference.graph)
    ops = [_unfused(reference.graph, name) for name in trace.floats]
    twins = [_unfused(work.graph, name) for name in trace.learned]
    floats = [_seen(reference, _end(op, trace), records) for op in ops]
    learned = [_seen(work, _end(op, trace), records) for op in twins]
    channels = floats[0].shape[-1]
    targets = [y.reshape(-1, channels) for y in floats]
    last = [_end_op(op, trace) for op in ops]
    cut = [f for op, y in zip(last, targets, strict=True) if (f := floors(op, y)) is not None]
    y = np.concatenate([array.reshape(-1, channels) for array in learned])
    part = Part(y, np.concatenate(targets), np.concatenate(cut) if len(cut) == len(ops) else None)
    return part, y if trace.scales is None else y * trace.scales


def _unfused(graph: Graph, name: str) -> Op:
    """Find a layer by name, and split off its activation and that of an ADD behind it."""
    op = next(op for op in graph.ops if op.name == name)
    split_activation(graph, op)
    for use in op.output.users:
        if isinstance(use.op, Add):
            split_activation(graph, use.op)
    return op


def _end_op(op: Op, trace: Trace) -> Op:
    """Find the operator that ends a layer: itself, or the ADD behind it (and behind the RESHAPE
    that a learned layer may need).
    """
    while trace.with_branch and not isinstance(op, Add):
        op = op.output.users[0].op
    return op


def _end(op: Op, trace: Trace) -> Value:
    return _end_op(op, trace).output


def _seen(model: Model, value: Value, records: Records) -> Array:
    batch = batch_for(Interpreter(model), records)
    return np.concatenate([array for _, (array,) in watched(model, [value], records, batch)])
