"""Quantize a network as Samsung ONE does, to the same numbers.

ONE's three steps (circle-quantizer --quantize_dequantize_weights, record-minmax, circle-quantizer
--quantize_with_minmax) are one here, or taken alone with files of floats in between: weights are
rounded, the network with rounded weights runs over all records, and every tensor becomes integers
by the 1st and 99th percentile of the records' extremes. Integers stand in the operators whether
kernels for them are here or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, Track, batch_size, check_records, untracked
from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.poles import refused_pole
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.quantization import Affine, note_range, noted_range
from luciole.ir.rewriting.moved import rescale_moved
from luciole.ir.value import Use
from luciole.ir.verify import wrong_operand_types
from luciole.lquantizer.assignment.format_of import word_of
from luciole.lquantizer.assignment.one_config import ALONE, TYPES, Kind, OneLayers, OneOptions
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.calibration.saved import Ranges, TensorRange
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.one_numbers import (
    Coded,
    bias,
    single_values,
    weights,
    with_parameters,
)
from luciole.lquantizer.network.limits import Limits, given_ranges
from luciole.lquantizer.network.one_grids import OneGrids, constants_of, tensors_of
from luciole.lquantizer.network.poles import reason_of
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report, shown
from luciole.lquantizer.rewrite.integers import slot_of, weight_slot

_LAYERS = (Conv2D, DepthwiseConv2D, TransposeConv, FullyConnected)
"""Operators whose weights are rounded before data run."""
_BY_CHANNEL: dict[type[Op], tuple[str, ...]] = {
    PRelu: ("alpha",),
    InstanceNorm: ("gamma", "beta"),
    RmsNorm: ("gamma",),
}
"""Constants with one number for each channel."""


def quantize_one(
    model: Model, records: Records | None, options: OneOptions, track: Track | None = None
) -> Result:
    """Quantize a float network to ONE's numbers; the given model stays as it is.

    ``records`` are unlabelled samples by input name. Raises QuantizeError for a network that is
    quantized already, has state, or calls other graphs, and for data that cannot be used.
    """
    work = float_network(model)
    layers = options.layers(options.config)
    names = {op: op.name for op in work.graph.ops}
    sizes = {op: constant_bytes(op) for op in work.graph.ops if isinstance(op, _LAYERS)}
    limits = Limits(UniformOptions(ranges=options.ranges), given_ranges(options.ranges_from))
    if options.takes_data:
        kinds = _quantize(work, records, options, layers, limits, track or untracked)
    else:
        kinds = _weights_alone(work.graph, ALONE[options.scheme])
    _check_types(work.graph)
    remove_dead(work.graph)
    remove_dead_buffers(work)
    report = Report([_layer(op, names[op], sizes[op], kinds[op], options) for op in sizes])
    report.warnings += _at_poles(work.graph)
    return Result(work, report, ranges=limits.ranges() if options.takes_data else None)


def _at_poles(graph: Graph) -> Iterator[str]:
    """Name the operators whose integers, which are ONE's, reach a pole."""
    for op in graph.ops:
        pole = refused_pole(op)
        if pole is not None:
            name = shown(op.name)
            yield f"{op.kind} {name!r} fails on some records: {reason_of(pole)}"


def float_network(model: Model) -> Model:
    """Copy a float network that ONE can quantize."""
    if len(model.graphs) != 1:
        raise QuantizeError("the model has several graphs: ONE's numbers are of one")
    work = real_network(model)
    for value in work.graph.values:
        if value.is_constant and is_float(value) and value.data is None:
            raise QuantizeError(f"constant {shown(value.name)!r} is sparse")
    for op in work.graph.ops:
        if op.stateful:
            raise QuantizeError(f"{op}: ONE's numbers are not of operators with a state")
    return work


def _check_types(graph: Graph) -> None:
    """Raise QuantizeError for an operator whose operands or results have impossible types."""
    for op in graph.ops:
        for sentence in wrong_operand_types(op):
            raise QuantizeError(f"ONE's numbers are not of what it reads: {sentence}")
        if op.result_dtypes() != tuple(value.dtype for value in op.results):
            raise QuantizeError(f"{op}: ONE's numbers are not of what it gives")


def _quantize(
    work: Model,
    records: Records | None,
    options: OneOptions,
    layers: OneLayers,
    limits: Limits,
    track: Track,
) -> Mapping[Op, Kind]:
    """Round weights, run, choose scales, and let everything be integers."""
    graph = work.graph
    kinds = layers.kinds(graph)
    rounded = round_weights(graph, kinds)
    values, batch, count = tensors_of(graph), 1, 0
    if records is not None:
        count = check_records(graph, records)
        check_finite(records)
        batch = batch_size(Interpreter(work), records)
    limits.watch(work, values, records, batch, track("ranges", count))
    grids = OneGrids(
        graph, kinds, layers.default, lambda value: limits.choose(value, layers.default.dtype)
    )
    grids.choose()
    _set_constants(grids, rounded)
    _set_ends(grids, options, layers.default)
    for value, affine in grids.tensors.items():
        _become(value, affine)
    rescale_moved(graph)
    return grids.kinds


def round_weights(graph: Graph, kinds: Mapping[Op, Kind]) -> dict[Use, Coded]:
    """Round the weights of layers, in float; returns the integers of each."""
    rounded = {}
    for use, value in _float_weights(graph):
        kind, axis = kinds[use.op], use.op.quantized_as.axis
        coded = weights(value.contents, kind.dtype, axis if kind.by_channel else None)
        _own(graph, use).set_data(coded.values)
        rounded[use] = coded
    return rounded


def _float_weights(graph: Graph) -> Iterator[tuple[Use, Value]]:
    """Yield the constant float weights of layers, and where they are read. Raises QuantizeError
    for one that is no finite number.
    """
    for op in graph.ops:
        if isinstance(op, _LAYERS):
            slot, value = slot_of(op, op.quantized_as.weight or "")
            if value is not None and value.data is not None and is_float(value):
                _check_finite(value)
                yield Use(op, slot), value


def _check_finite(value: Value) -> None:
    """Refuse a constant that no integers stand for."""
    if value.data is not None and not np.isfinite(value.data).all():
        name = shown(value.name)
        raise QuantizeError(f"constant {name!r} holds NaN or infinity: no integers stand for it")


def _own(graph: Graph, use: Use) -> Value:
    """Return a constant operand that nothing else uses, a copy where something does."""
    op, slot = use
    value = op.required(slot)
    if len(value.users) == 1 and not value.is_output:
        return value
    own = graph.add_constant(graph.unique_name(value.name), value.contents)
    op.set_operand(slot, own)
    return own


def _set_constants(grids: OneGrids, rounded: Mapping[Use, Coded]) -> None:
    """Store all float constants as integers: weights as they were rounded, and at last biases."""
    for op in list(grids.graph.ops):
        kind = grids.kinds[op]
        for slot, name, value in list(constants_of(op)):
            use = Use(op, slot)
            coded = rounded.get(use) or _constant(grids, use, name, value, kind)
            _put(_own(grids.graph, use), coded)


def _constant(grids: OneGrids, use: Use, name: str, value: Value, kind: Kind) -> Coded:
    data, op = value.contents, use.op
    if use in grids.constants:
        return with_parameters(data, grids.constants[use])
    _check_finite(value)
    if op.quant is not None and name == op.quant.bias:
        return _bias(grids, op, data)
    if kind.by_channel and name in _BY_CHANNEL.get(type(op), ()) and data.size == data.shape[-1]:
        return single_values(data, kind.dtype)
    return weights(data, kind.dtype, None)


def _bias(grids: OneGrids, op: Op, data: np.ndarray) -> Coded:
    """Quantize a bias, whose layer's weights are integers by now."""
    x = op.out_backprop if isinstance(op, TransposeConv) else op.required(0)
    _, filters, _ = weight_slot(op)
    return bias(data, _affine(grids, x), _affine(grids, filters))


def _affine(grids: OneGrids, value: Value) -> Affine:
    return grids.tensors[value] if value in grids.tensors else Affine.of(value, "the weights")


def _put(value: Value, coded: Coded) -> None:
    value.make_constant(np.ascontiguousarray(coded.codes), coded.affine.dtype)
    value.quantization = coded.affine.table()


def _become(value: Value, affine: Affine) -> None:
    if value.dtype == TensorType.FLOAT32:
        value.dtype, value.quantization = affine.dtype, affine.table()
        value.buffer = None  # inputs may have contents in files, which nobody reads


def _set_ends(grids: OneGrids, options: OneOptions, default: Kind) -> None:
    """Set the chosen types of inputs and outputs, before and behind a QUANTIZE."""
    graph, own = grids.graph, default.dtype.name.lower()
    for value in dict.fromkeys(v for v in graph.outputs if v in grids.tensors):
        _set_output(grids, value, options.output_type or own)
    for value in [v for v in graph.inputs if v in grids.tensors]:
        _set_input(grids, value, options.input_type or own)


def _set_input(grids: OneGrids, value: Value, end: str) -> None:
    if grids.tensors[value].dtype == TYPES.get(end):
        return
    users, kind = list(value.users), Kind(grids.tensors[value].dtype, by_channel=False)
    if users:
        first = min((use.op for use in users), key=grids.graph.ops.index)
        inside = grids.quantized(value, kind, first)
        for op, slot in users:
            op.set_operand(slot, inside)
    del grids.tensors[value]
    if end in TYPES:
        grids.tensors[value] = grids.at_end(value, TYPES[end])


def _set_output(grids: OneGrids, value: Value, end: str) -> None:
    graph = grids.graph
    if grids.tensors[value].dtype == TYPES.get(end):
        return
    if end in TYPES:
        outside = grids.quantized(value, Kind(TYPES[end], by_channel=False), None)
    else:
        outside = graph.append(
            Dequantize(value), graph.unique_name(f"{value.name}_Dequantize")
        ).output
    graph.outputs = [outside if v is value else v for v in graph.outputs]
    graph.rename_in_signatures(value, outside)


def _weights_alone(graph: Graph, dtype: TensorType) -> dict[Op, Kind]:
    """Store the weights of layers as integers, one scale for each channel, under float inputs."""
    for use, value in _float_weights(graph):
        coded = weights(value.contents, dtype, use.op.quantized_as.axis)
        _put(_own(graph, use), coded)
    return dict.fromkeys(graph.ops, Kind(dtype, by_channel=True))


def _layer(op: Op, name: str, size: int, kind: Kind, options: OneOptions) -> LayerReport:
    """Report the formats of a layer."""
    bits = 8 if kind.dtype in (TensorType.UINT8, TensorType.INT8) else 16
    report = LayerReport(name, bits if options.takes_data else None, bits)
    report.bytes_before, report.bytes_after = size, constant_bytes(op)
    report.format = word_of(op)
    return report


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
