"""Give a whole network uniform integers, its layers learned one after the other.

Every tensor is rounded where it is made, layers are fitted on what the rounded network in front of
them computes, and at last operators compute with the integers themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import (
    Progress,
    Records,
    Track,
    batch_size,
    check_records,
    untracked,
)
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.weights import has_weights, weight_constant, weights_of
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.fold_constants import FoldConstants
from luciole.ir.passes.fuse_activation import fuse_activation
from luciole.ir.passes.fuse_batch_norm import fuse_batch_norm
from luciole.ir.passes.fuse_quantization import fuse_weights
from luciole.ir.passes.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.quant import Quant
from luciole.ir.quantization import Affine, is_affine
from luciole.ir.text.common import one_line
from luciole.ir.value import Use
from luciole.kernels.core import registry
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.calibration.products import (
    Product,
    Sampling,
    groups_of,
    rows_of_input,
    rows_of_results,
    weight_rows,
)
from luciole.lquantizer.calibration.seen import seen
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.ranges import rule_of
from luciole.lquantizer.methods.uniform import Integers, nearest, output_aware
from luciole.lquantizer.network.grids import choose_grids, is_float
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report, snr_db
from luciole.lquantizer.rewrite.ends import set_ends
from luciole.lquantizer.rewrite.integers import (
    insert_pairs,
    runs,
    set_bias,
    set_constant,
    set_weights,
    slot_of,
    to_integers,
    weight_slot,
)
from luciole.lquantizer.schemes import Scheme, UniformOptions
from luciole.schema.enums import ActivationFunctionType

_LEARNED_FROM = 400
"""Records that layers are learned from at the most; ranges are of all. 1,000 gave the same."""


def quantize_uniform(
    model: Model, records: Records | None, options: UniformOptions, track: Track | None = None
) -> Result:
    """Quantize a float network to uniform integers; the given model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them; schemes that
    leave tensors between operators float need none. Raises QuantizeError for a network that is
    quantized already, for one without anything to quantize, and for data that cannot be used.
    """
    begun = time.perf_counter()
    work = _float_network(model)
    if options.needs_data:
        if records is None:
            raise QuantizeError(f"the scheme {options.scheme} learns from data: give some")
        report = _static(work, records, options, track or untracked)
    else:
        report = _weights_alone(work.graph, options)
    remove_dead(work.graph)
    remove_dead_buffers(work)
    report.seconds = time.perf_counter() - begun
    return Result(work, report)


def _float_network(model: Model) -> Model:
    """Copy a network with activations and batch normalization fused, its constants real numbers.

    Raises QuantizeError where it computes with integers already.
    """
    for value in (v for graph in model.graphs for v in graph.values):
        if value.producer is not None and is_affine(value) and value.dtype != TensorType.FLOAT32:
            raise QuantizeError(
                f"the model is quantized already: tensor {value.name!r} is {value.dtype.name}"
            )
    work = model.clone()
    graph = work.graph
    for op in graph.ops:
        _make_real(graph, op)
    FoldConstants(registry.evaluate, None)(graph)
    while fuse_batch_norm(graph) or fuse_activation(graph):
        remove_dead(graph)
    remove_dead(graph)
    return work


def _make_real(graph: Graph, op: Op) -> None:
    """Let a layer of integer weights under float inputs have the real numbers."""
    value, found = weight_constant(op) if has_weights(op) else None, None
    if value is not None and value.dtype != TensorType.FLOAT32 and is_float(op.operands[0]):
        found = weights_of(op)
    if found is None or value is None:
        return
    slot, _, axis = weight_slot(op)
    rows = found.values().astype(np.float32).reshape(len(found.codes), *found.shape)
    real = np.ascontiguousarray(np.moveaxis(rows, 0, axis))
    op.set_operand(slot, graph.add_constant(graph.unique_name(f"{value.name}/real"), real))


# ------------------------------------------------------------------------ tensors between operators
def _static(work: Model, records: Records, options: UniformOptions, track: Track) -> Report:
    """Round tensors and layers of a network, and let its operators compute with integers."""
    count = check_records(work.graph, records)
    check_finite(records)
    walk = _Walk.begin(work, records, options, track)
    layers = walk.layers()
    reports = {}
    step = track("learning layers", len(layers))
    targets = walk.targets(layers, track("float network", count))
    for op, target in zip(layers, targets, strict=True):
        reports[op.name] = walk.learn(op, target)
        step(1)
    to_integers(work.graph)
    set_ends(work.graph, options.input_type, options.output_type)
    return _report(work.graph, reports)


@dataclass
class _Walk:
    """A network on its way, its float twin, and what both are run on."""

    work: Model
    reference: Model
    twins: Mapping[Op, Op]
    integers: set[Op]
    records: Records
    batch: int
    sampling: Sampling
    options: UniformOptions

    @classmethod
    def begin(cls, work: Model, records: Records, options: UniformOptions, track: Track) -> _Walk:
        """Watch the float network, and round every tensor that operators on integers touch."""
        graph = work.graph
        reference = work.clone()
        twins = dict(zip(graph.ops, reference.graph.ops, strict=True))
        batch = batch_size(Interpreter(reference), records)
        count = len(next(iter(records.values())))
        integers = {op for op in graph.ops if _fits(op, options)}
        if not integers:
            raise QuantizeError("nothing to quantize: no operator has a form on integers")
        values = [v for v in graph.values if is_float(v) and (v.producer or v.is_input)]
        found = seen(work, values, records, batch, track("ranges", count))
        dtype = options.types.activations
        assert dtype is not None, "tensors between operators become integers"
        grids = choose_grids(graph, integers, found, rule_of(options.ranges), dtype)
        insert_pairs(graph, grids)
        some = {name: array[:: -(-count // _LEARNED_FROM)] for name, array in records.items()}
        sampling = Sampling.of(len(next(iter(some.values()))), options.seed)
        return cls(work, reference, twins, integers, some, batch, sampling, options)

    def layers(self) -> list[Op]:
        """List the layers that get integer weights, in execution order."""
        return [op for op in self.work.graph.ops if op in self.integers and has_weights(op)]

    def targets(self, layers: list[Op], progress: Progress) -> list[Array | None]:
        """Take rows of what the float network computes in front of layers' activations."""
        twins = [self.twins[op] for op in layers]
        pairs = [(op, op.output) for op in twins if isinstance(op, Product)]
        for twin, _ in pairs:
            split_activation(self.reference.graph, twin)
        how = (self.records, self.batch, self.sampling, progress)
        found = iter(rows_of_results(self.reference, pairs, *how))
        return [next(found) if isinstance(op, Product) else None for op in layers]

    def learn(self, op: Op, target: Array | None) -> LayerReport:
        """Learn a layer on the network as it is by now, and give it its integers."""
        report = LayerReport(op.name, 8 * self.activation_bytes, self.options.types.weight_bits)
        report.bytes_before = constant_bytes(op)
        parts = [] if target is None else list(self._parts(op, target))
        found = self._integers(op, parts)
        if parts:
            _judge(report, parts, found)
        set_weights(self.work.graph, op, found.codes, found.scales, self.options.types.weights)
        set_bias(self.work.graph, op, found.bias)
        report.bytes_after = constant_bytes(op)
        return report

    @property
    def activation_bytes(self) -> int:
        """Bytes of an element between operators."""
        return 2 if self.options.types.activations == TensorType.INT16 else 1

    def _integers(self, op: Op, parts: list[Part]) -> Integers:
        """Learn a layer's integers; by its weights alone where nothing is known of its rows."""
        most, channels = self.options.types.most, self.options.granularity == "channel"
        weights = weight_rows(op)
        if parts and self.options.rounding == "output_aware":
            return output_aware(parts, weights, most, channels=channels)
        searched = self.options.ranges == "mse"
        return nearest(weights, _bias(op), most, channels=channels, searched=searched)

    def _parts(self, op: Op, target: Array) -> Iterator[Part]:
        assert isinstance(op, Product), "only these have rows"
        rows = rows_of_input(self.work, op, self.records, self.batch, self.sampling)
        floor = _floor(op)
        for z, t in zip(rows, np.split(target, groups_of(op), -1), strict=True):
            yield Part(z, t, None if floor is None else np.full_like(t, floor))


def _judge(report: LayerReport, parts: list[Part], found: Integers) -> None:
    """Enter how close the layer's output is, before it is rounded itself."""
    values = (found.codes * found.scales[:, None]).astype(np.float32)
    split = zip(np.split(values, len(parts)), np.split(found.bias, len(parts)), strict=True)
    errors = [p.error(p.z @ w.T + b) for p, (w, b) in zip(parts, split, strict=True)]
    report.mse = float(np.mean(errors))
    report.snr_db = snr_db(float(np.mean([p.signal for p in parts])), report.mse)


def _bias(op: Op) -> Array:
    """Return a layer's bias [o], 0 where it has none."""
    name = None if op.quant is None else op.quant.bias
    value = None if name is None else slot_of(op, name)[1]
    data = None if value is None else value.data
    return np.zeros(len(weight_rows(op)), np.float32) if data is None else data.reshape(-1)


def _floor(op: Op) -> float | None:
    """What a layer's activation makes of everything below it."""
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    low, _ = LIMITS.get(activation, (-np.inf, np.inf))
    return low if np.isfinite(low) else None


def _fits(op: Op, options: UniformOptions) -> bool:
    """Tell whether an operator has a kernel with the scheme's element types."""
    if op.quant is None or op.stateful or not any(is_float(v) for v in op.operands):
        return False
    value = op.given_operands().get(op.quant.weight or "")
    if value is not None and value.data is None:
        return False
    named = op.named_operands()
    return runs(op.clone([_as_integers(op.quant, name, v, options.types) for name, v in named]))


def _as_integers(quant: Quant, name: str, value: Value | None, types: Scheme) -> Value | None:
    """Copy a float operand as it would be in a scheme; any other stays as it is."""
    if value is None or not is_float(value) or types.activations is None:
        return value
    of_layer = {quant.weight: types.weights, quant.bias: types.bias}
    dtype = of_layer.get(name, types.activations)
    twin = Value(value.name, dtype, value.shape)
    twin.quantization = Affine.single(1.0, 0, dtype).table()
    return twin


# ------------------------------------------------------------------------------------ weights alone
def _weights_alone(graph: Graph, options: UniformOptions) -> Report:
    """Store weights as integers or halves; what is between operators stays float."""
    reports = {}
    for op in list(graph.ops):
        value = weight_constant(op) if has_weights(op) else None
        if value is None or value.dtype != TensorType.FLOAT32:
            continue
        report = LayerReport(op.name, None, 16)
        report.bytes_before = constant_bytes(op)
        if options.types.weights == TensorType.FLOAT16:
            _halve(graph, op, value)
        else:
            report.weight_bits = 8
            channels = options.granularity == "channel"
            found = nearest(
                weight_rows(op), _bias(op), options.types.most, channels=channels, searched=False
            )
            set_weights(graph, op, found.codes, found.scales, options.types.weights)
        report.bytes_after = constant_bytes(op)
        reports[op.name] = report
    if not reports:
        raise QuantizeError("nothing to quantize: no layer has constant float weights")
    if not options.types.explicit:
        fuse_weights(graph, runs)
    return Report(list(reports.values()))


def _halve(graph: Graph, op: Op, value: Value) -> None:
    """Store a layer's weights in half precision."""
    assert value.data is not None
    slot = op.operands.index(value)
    set_constant(graph, Use(op, slot), value.data.astype(np.float16), None)


def _report(graph: Graph, reports: Mapping[str, LayerReport]) -> Report:
    report = Report(list(reports.values()))
    report.floats = [f"{op.kind} {one_line(op.name)!r}" for op in graph.ops if _computes_floats(op)]
    return report


def _computes_floats(op: Op) -> bool:
    """Tell whether an operator that may compute with integers does so with floats."""
    if isinstance(op, Quantize | Dequantize):
        return False
    return any(is_float(value) for value in op.operands)
