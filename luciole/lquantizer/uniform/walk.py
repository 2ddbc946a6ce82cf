"""Give a whole network uniform integers, its layers learned one after the other.

Every tensor is rounded where it is made, layers are fitted on what the rounded network in front of
them computes, and at last operators compute with the integers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import (
    Progress,
    Records,
    Track,
    batch_size,
)
from luciole.ir import Array, Model, Op, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.weights import has_weights
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.quant import Quant
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.calibration.products import (
    Product,
    Sampling,
    groups_of,
    rows_of_input,
    rows_of_results,
    weight_rows,
)
from luciole.lquantizer.calibration.ranges import rule_of
from luciole.lquantizer.calibration.seen import seen
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.methods.uniform import Integers, nearest, output_aware
from luciole.lquantizer.network.grids import choose_grids, is_float
from luciole.lquantizer.network.preparation import floor_of
from luciole.lquantizer.report import LayerReport, snr_db
from luciole.lquantizer.rewrite.ends import set_ends
from luciole.lquantizer.rewrite.integers import (
    insert_pairs,
    runs,
    set_bias,
    set_weights,
    slot_of,
    to_integers,
)
from luciole.lquantizer.schemes import Scheme, UniformOptions

_LEARNED_FROM = 400
"""Records that layers are learned from at the most; ranges are of all. 1,000 gave the same."""


def walk(
    work: Model, records: Records, options: UniformOptions, track: Track
) -> dict[Op, LayerReport]:
    """Round the tensors of a network, learn its layers, and let its operators compute with
    integers; say of each layer how close it is.

    Raises QuantizeError where nothing can be quantized, and for data that cannot be used.
    """
    names = {op: op.name for op in work.graph.ops}
    way = _Way.begin(work, records, options, track)
    layers = way.layers()
    reports = {}
    targets = way.targets(layers, track("float network", way.count))
    step = track("learning layers", len(layers))
    for op, target in zip(layers, targets, strict=True):
        reports[op] = way.learn(op, names[op], target)
        step(1)
    to_integers(work.graph)
    set_ends(work.graph, options.input_type, options.output_type)
    return reports


@dataclass
class _Way:
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
    def begin(cls, work: Model, records: Records, options: UniformOptions, track: Track) -> _Way:
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
        insert_pairs(graph, grids.tensors, grids.operands)
        some = {name: array[:: -(-count // _LEARNED_FROM)] for name, array in records.items()}
        sampling = Sampling.of(len(next(iter(some.values()))), options.seed)
        return cls(work, reference, twins, integers, some, batch, sampling, options)

    @property
    def count(self) -> int:
        """Records that layers are learned from."""
        return len(next(iter(self.records.values())))

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

    def learn(self, op: Op, name: str, target: Array | None) -> LayerReport:
        """Learn a layer on the network as it is by now, and give it its integers."""
        types = self.options.types
        report = LayerReport(name, types.activation_bits, types.weight_bits)
        report.bytes_before = constant_bytes(op)
        parts = [] if target is None else list(self._parts(op, target))
        found = self._integers(op, parts)
        if parts:
            _judge(report, parts, found)
        set_weights(self.work.graph, op, found.codes, found.scales, types.weights)
        set_bias(self.work.graph, op, found.bias)
        return report

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
        floor = floor_of(op.activation)
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


def _fits(op: Op, options: UniformOptions) -> bool:
    """Tell whether an operator has a kernel with the scheme's element types."""
    if op.quant is None or op.stateful or not any(is_float(v) for v in op.operands):
        return False
    value = op.given_operands().get(op.quant.weight or "")
    if value is not None and value.data is None:
        return False
    named = list(op.named_operands())
    twin = op.clone([_as_integers(op.quant, name, v, options.types) for name, v in named])
    found = runs(twin)
    twin.set_operands([])  # so that no tensor is used by it any more
    return found


def _as_integers(quant: Quant, name: str, value: Value | None, types: Scheme) -> Value | None:
    """Copy a float operand as it would be in a scheme; any other stays as it is."""
    if value is None or not is_float(value) or types.activations is None:
        return value
    of_layer = {quant.weight: types.weights, quant.bias: types.bias}
    dtype = of_layer.get(name, types.activations)
    twin = Value(value.name, dtype, value.shape)
    twin.quantization = Affine.single(1.0, 0, dtype).table()
    return twin
