"""Take one of the three steps of Samsung ONE's quantizer alone, with files of floats in between.

circle-quantizer --quantize_dequantize_weights, record-minmax, circle-quantizer
--quantize_with_minmax: layers get rounded weights, tensors note what they reach, and both become
integers.
"""

from __future__ import annotations

from dataclasses import replace

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, Track, batch_size, check_records, untracked
from luciole.ir import Model, TensorType
from luciole.ir.quantization import note_range, noted_range
from luciole.lquantizer.assignment.one_options import OneOptions
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.calibration.saved import Ranges, TensorRange
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.limits import Limits
from luciole.lquantizer.network.one_grids import tensors_of
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import Report
from luciole.lquantizer.whole.one import float_network, quantize_one, round_weights


def round_alone(model: Model, options: OneOptions) -> Result:
    """Round the weights of layers, which stay floats."""
    work = float_network(model)
    round_weights(work.graph, options.layers(options.config).kinds(work.graph))
    return Result(work, Report([]))


def record_alone(
    model: Model, records: Records, options: OneOptions, track: Track | None
) -> Result:
    """Run a float network over records, and note in every tensor what it reaches."""
    work = float_network(model)
    values, count = tensors_of(work.graph), check_records(work.graph, records)
    check_finite(records)
    limits = Limits(UniformOptions(ranges=options.ranges))
    batch = batch_size(Interpreter(work), records)
    limits.watch(work, values, records, batch, (track or untracked)("ranges", count))
    for value in values:
        note_range(value, limits.choose(value, TensorType.UINT8))
    return Result(work, Report([]), ranges=limits.ranges())


def quantize_noted(model: Model, options: OneOptions, track: Track | None) -> Result:
    """Quantize a float network whose tensors note what they reach. Raises QuantizeError for one
    where none does.
    """
    work = model.clone()
    noted = {}
    for value in tensors_of(work.graph):
        reach = noted_range(value)
        if reach is not None:
            noted[value.name] = TensorRange(*reach)
            value.quantization = None
    if not noted:
        raise QuantizeError("no tensor notes its min and max: the step ranges writes them")
    ranges = Ranges(noted, source="min and max")
    return quantize_one(work, None, replace(options, step=None, ranges_from=ranges), track)
