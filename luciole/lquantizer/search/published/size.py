"""Count what the published search calls a size (equation 6.2): bits of weights, without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WORD = 4
"""Bytes of a bias, of a scale and of a zero point."""


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


def float_bytes(layers: Sequence[Layer]) -> int:
    """Count the bytes of floats: 4 for each weight and bias."""
    return sum(_WORD * (layer.weights + layer.biases) for layer in layers)
