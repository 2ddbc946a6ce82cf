"""A rounded network some of whose integers keep to fewer bits than their type has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from luciole.ir import Model, Op
from luciole.ir.ops.fake_quant import FakeQuant
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import affine_of
from luciole.lquantizer.rewrite.batch_norm import Normalized
from luciole.lquantizer.rewrite.rounded import Rounded


@dataclass(frozen=True)
class Narrowed(Rounded):
    """A rounded network; by the name of a layer's operator, the bits that its weights and its
    result keep to, and the batch normalizations that are folded while it is trained.
    """

    weight_bits: Mapping[str, int] = field(default_factory=dict)
    result_bits: Mapping[str, int] = field(default_factory=dict)
    norms: Mapping[str, Normalized] = field(default_factory=dict)

    def integers(self) -> Model:
        """Copy it with operators that compute with the integers themselves, where their tensors
        have all bits of their type; others keep to fewer by FAKE_QUANT, between floats.
        """
        made = self.copy()
        floats = {op for name in self.result_bits for op in _narrow(made, name)}
        whole = Rounded(made.model, made.chosen - floats, made.input_type, made.output_type)
        return whole.integers()


def _narrow(made: Narrowed, name: str) -> set[Op]:
    """Replace the rounding of a layer's result by a FAKE_QUANT; returns the operators beside it,
    which cannot compute with integers then.
    """
    graph, near = made.model.graph, set[Op]()
    for quantize in roundings(made.model, name):
        affine = affine_of(quantize.output)
        bits = made.result_bits[name]
        if affine is None or bits >= affine.bits:
            continue
        low, high = (float(side[0]) for side in affine.range)
        rounding = FakeQuant(quantize.input, min=low, max=high, num_bits=bits)
        graph.insert_before(quantize, rounding, graph.unique_name(f"{quantize.input.name}/narrow"))
        for use in list(quantize.output.users):
            assert isinstance(use.op, Dequantize), "the network is rounded"
            near |= {user.op for user in use.op.output.users}
            use.op.output.replace_with(rounding.output)
        near |= {m.op for m in [quantize.input.producer] if m is not None}
    return near


def roundings(model: Model, name: str) -> list[Quantize]:
    """List the operators that round a layer's result."""
    ops = [op for op in model.graph.ops if op.name == name and not isinstance(op, Quantize)]
    users = [use.op for op in ops for result in op.results for use in result.users]
    return [op for op in users if isinstance(op, Quantize)]
