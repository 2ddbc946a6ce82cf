"""A network made ready for the published search: layers, batch normalizations, first ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.schemes import Granularity, UniformOptions
from luciole.lquantizer.calibration.rows import weight_rows
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.integers import Integers, nearest
from luciole.lquantizer.network.batch_norms import batch_norms
from luciole.lquantizer.network.float_network import make_float
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.rewrite.batch_norm import Normalized
from luciole.lquantizer.rewrite.integers import slot_of
from luciole.lquantizer.rewrite.narrowed import Narrowed
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.search.published.genes import Widths, components, is_layer, mask_of
from luciole.lquantizer.search.published.size import Layer
from luciole.lquantizer.training.uniform_parameters import IntegerWeights, integer_weights
from luciole.lquantizer.whole.integers import quantize_uniform

_ROUNDING = 1e-4
"""How far folded weights may be from a converter's, as a share."""


@dataclass(frozen=True)
class Network:
    """A float network with batch normalizations folded, the layers of each group with weights by
    their names, and the batch normalizations that layers had.
    """

    model: Model
    groups: list[list[str]]
    mask: list[int]
    norms: dict[str, Normalized]

    @classmethod
    def of(cls, model: Model, records: Records, folded: Sequence[Normalized] = ()) -> Network:
        """Group a float network's layers, and measure on records the moments of its batch
        normalizations; those that were ``folded`` into its layers before are found again by their
        weights.

        Raises QuantizeError where it is quantized already, and where it has no layers.
        """
        work = real_network(model)
        norms = batch_norms(work, records)
        parts = components(work.graph)
        layers = [[op for op in group if is_layer(op)] for group in parts]
        mask = mask_of(parts)
        make_float(work.graph)
        kept = {op for op in work.graph.ops if is_layer(op)}
        groups = [[op.name for op in group if op in kept] for group in layers if group]
        if not any(groups):
            raise QuantizeError("nothing to search: no layer has constant float weights")
        known = {op: again for op in kept if (again := _folded_norm(op, folded)) is not None}
        for op in known:
            _with_bias(work.graph, op)
        named = {op.name: norm for op, norm in (known | norms).items() if op in kept}
        return cls(work, groups, mask, named)

    def layers(self) -> dict[str, Layer]:
        """Count the weights, biases and outputs of each layer."""
        return {op.name: _counted(op) for op in self.model.graph.ops if is_layer(op)}


def _folded_norm(op: Op, folded: Sequence[Normalized]) -> Normalized | None:
    """Find the batch normalization that was folded into a layer's weights."""
    rows = weight_rows(op)
    room = _ROUNDING * float(np.abs(rows).max(initial=0))
    for one in folded:
        if one.weights.shape == rows.shape:
            weights, _ = one.norm.fold(one.weights)
            if np.allclose(weights, rows, rtol=_ROUNDING, atol=room):
                return one
    return None


def _with_bias(graph: Graph, op: Op) -> None:
    """Give a layer a bias where the converter left it out for being 0: training changes it."""
    slot, value = slot_of(op, op.quantized_as.bias or "")
    if value is None:
        zeros = np.zeros(len(weight_rows(op)), np.float32)
        op.set_operand(slot, graph.add_constant(graph.unique_name(f"{op.name}/bias"), zeros))


def _counted(op: Op) -> Layer:
    rows = weight_rows(op)
    named = {} if op.quant is None else op.given_operands()
    bias = named.get("" if op.quant is None else op.quant.bias or "")
    return Layer(rows.size, 0 if bias is None else int(np.prod(bias.dims)), len(rows))


@dataclass(frozen=True)
class Start:
    """A network rounded to 8 bits, from which candidates are made, and its float weights [o, n] by
    the names of layers.
    """

    network: Network
    rounded: Rounded
    latents: Mapping[str, Array]
    by_channel: bool

    @classmethod
    def of(cls, network: Network, records: Records, granularity: Granularity, seed: int) -> Start:
        """Find the first ranges on records: the least and the largest number of each tensor."""
        options = UniformOptions(
            granularity=granularity, rounding="nearest", rescale="none", seed=seed
        )
        quantized = quantize_uniform(network.model, records, replace(options, ranges="min_max"))
        if quantized.rounded is None:
            raise QuantizeError("nothing to search: no operator has a form on integers")
        return cls(network, quantized.rounded, quantized.latents, granularity == "channel")

    def narrowed(self, widths: Widths) -> Narrowed:
        """Round the weights of each layer to its bits, with the least squared error."""
        copied, norms = self.rounded.copy(), self.network.norms
        for weights in integer_weights(copied.model.graph):
            if weights.op.name in widths.weights:
                self._round(weights, widths.weights[weights.op.name])
        return Narrowed(
            copied.model,
            copied.chosen,
            copied.input_type,
            copied.output_type,
            weight_bits=dict(widths.weights),
            result_bits=dict(widths.results),
            norms=norms,
        )

    def _round(self, weights: IntegerWeights, bits: int) -> None:
        rows = self.latents[weights.op.name]
        bias = np.zeros(len(rows), np.float32)
        most = int(2 ** (bits - 1) - 1)
        integers = nearest(rows, bias, most, channels=self.by_channel, searched=True)
        store(weights, integers)


def store(weights: IntegerWeights, integers: Integers) -> None:
    """Give a rounded layer other codes."""
    shape, order = weights.layout()
    laid = np.transpose(integers.codes.T.reshape(shape), order)
    affine = Affine.of(weights.codes, "the weights")
    weights.codes.make_constant(np.ascontiguousarray(laid), affine.dtype)
    scales = Affine.channels(
        integers.scales, np.zeros(len(integers.scales)), affine.axis, affine.dtype
    )
    weights.codes.quantization = scales.table()
