"""Count what the published search calls a size (equation 6.2), bits of weights without padding, and
bit operations, where the widths of tensors count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luciole.ir import Graph, Value
from luciole.ir.analysis.figures import macs
from luciole.lquantizer.search.additive import ACCURACY, SIZE
from luciole.lquantizer.search.published.genes import Widths, is_layer

_WORD = 4
"""Bytes of a bias, of a scale and of a zero point."""
_WHOLE, _FLOAT = 8, 32
"""Bits of an integer that has no gene, and of a float."""
FORMULA, OPERATIONS = "formula bytes", "bit operations"
"""Names of figures."""


def cost_names(inputs: bool) -> tuple[str, ...]:
    """Name the figures besides a file's bytes, which are more where inputs have genes."""
    return (FORMULA, OPERATIONS) if inputs else (FORMULA,)


def objectives_of(costs: Mapping[str, float]) -> tuple[str, ...]:
    """Name the objectives, with bit operations where they are counted."""
    return (ACCURACY, SIZE, *(name for name in costs if name == OPERATIONS))


@dataclass(frozen=True)
class Layer:
    """How many weights and biases a layer has, and how many outputs."""

    weights: int
    biases: int
    outputs: int


def bytes_of(
    layers: Mapping[str, Layer], widths: Mapping[str, int], by_channel: bool = True
) -> int:
    """Add up 1/8 of each layer's weights times their bits, biases and scales of 32 bits, and where
    there is one scale for a whole layer, a zero point: asymmetric weights have one (section 6.3.3).
    """
    bits = sum(layer.weights * widths[name] for name, layer in layers.items())
    biases = sum(layer.biases for layer in layers.values())
    scales = sum(layer.outputs if by_channel else 2 for layer in layers.values())
    return -(-bits // 8) + _WORD * (biases + scales)


def bit_operations(graph: Graph, widths: Widths) -> int:
    """Add up each layer's multiplications, times the bits of its weights and of its inputs: the
    most that any layer in front of it gives, 8 where there is none.
    """
    bits: dict[Value, int] = {}
    total = 0
    for op in graph.ops:
        read = [v for v in op.operands if v is not None and v.data is None]
        most = max([bits.get(value, _WHOLE) for value in read], default=_WHOLE)
        if is_layer(op):
            total += (macs(op) or 0) * widths.weights.get(op.name, _WHOLE) * most
        result_bits = widths.results.get(op.name, _WHOLE if is_layer(op) else most)
        bits |= dict.fromkeys(op.results, result_bits)
    return total


def float_operations(graph: Graph) -> int:
    """Count the bit operations of floats, 32 times 32 for each multiplication."""
    return sum(_FLOAT * _FLOAT * (macs(op) or 0) for op in graph.ops if is_layer(op))


def float_bytes(layers: Sequence[Layer]) -> int:
    """Count the bytes of floats: 4 for each weight and bias."""
    return sum(_WORD * (layer.weights + layer.biases) for layer in layers)
