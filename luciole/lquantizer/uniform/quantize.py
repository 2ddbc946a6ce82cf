"""Quantize a whole network to uniform integers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import (
    Records,
    Track,
    batch_size,
    check_records,
    outputs_of,
    untracked,
)
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.text.common import one_line
from luciole.lquantizer.calibration.ranges import rule_of
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.grids import is_float
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report
from luciole.lquantizer.rewrite.integers import stored_bytes
from luciole.lquantizer.schemes import UniformOptions
from luciole.lquantizer.uniform.preparation import LONGEST_NAME, float_network
from luciole.lquantizer.uniform.rescale import RULES, rescale
from luciole.lquantizer.uniform.walk import walk
from luciole.lquantizer.uniform.weights_alone import store_weights

_JUDGES = 48
"""Records that say which rescaling is best, at the most."""


def quantize_uniform(
    model: Model, records: Records | None, options: UniformOptions, track: Track | None = None
) -> Result:
    """Quantize a float network to uniform integers; the given model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them; schemes that
    leave tensors between operators float need none. Raises QuantizeError for a network that is
    quantized already, for one without anything to quantize, and for data that cannot be used.
    """
    begun = time.perf_counter()
    rule_of(options.ranges)  # which refuses what is no rule
    work = float_network(model)
    if options.needs_data:
        if records is None:
            raise QuantizeError(f"the scheme {options.scheme} learns from data: give some")
        check_records(work.graph, records)
        check_finite(records)
        _rescale(work, records, options)
        reports = walk(work, records, options, track or untracked)
    else:
        reports = store_weights(work.graph, options)
    report = _report(reports)
    report.floats = _float_operators(work.graph) if options.needs_data else []
    remove_dead(work.graph)
    remove_dead_buffers(work)
    report.seconds = time.perf_counter() - begun
    return Result(work, report)


def _rescale(work: Model, records: Records, options: UniformOptions) -> None:
    """Rescale channels as the options say, judged by a few of the records."""
    if options.rescale == "none":
        return
    some = {name: array[:: -(-len(array) // _JUDGES)] for name, array in records.items()}
    batch = batch_size(Interpreter(work), some)
    if options.rescale != "auto":
        rescale(work, some, batch, (options.rescale,), None)
        return
    quick = replace(options, rounding="nearest", ranges="min_max", rescale="none")
    quick = replace(quick, input_type="float32", output_type="float32")
    rescale(work, some, batch, tuple(RULES), partial(_error, options=quick))


def _error(model: Model, name: str, inputs: Array, *, options: UniformOptions) -> float:
    """Compute the mean squared error that rounding makes of the output of a small model."""
    rounded = model.clone()
    walk(rounded, {name: inputs}, options, untracked)
    found, wanted = (outputs_of(Interpreter(m), {name: inputs}) for m in (rounded, model))
    pairs = zip(found.values(), wanted.values(), strict=True)
    return float(np.mean([np.square(a - b, dtype=np.float64).mean() for a, b in pairs]))


def _report(reports: Mapping[Op, LayerReport]) -> Report:
    """Enter what each layer's constants take by now."""
    for op, report in reports.items():
        report.bytes_after = stored_bytes(op)
    return Report(list(reports.values()))


def _float_operators(graph: Graph) -> list[str]:
    """List the operators that compute with floats where others do with integers."""
    return [
        f"{op.kind} {one_line(op.name)[:LONGEST_NAME]!r}"
        for op in graph.ops
        if not isinstance(op, Quantize | Dequantize) and any(is_float(v) for v in op.operands)
    ]
