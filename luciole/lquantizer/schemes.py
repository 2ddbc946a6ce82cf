"""Schemes of uniform quantization: what inputs, weights and biases of layers become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from luciole.ir import TensorType
from luciole.ir.dtypes import element_bits
from luciole.lquantizer.errors import QuantizeError

Granularity = Literal["channel", "tensor"]
Rounding = Literal["output_aware", "nearest"]
Rescale = Literal["auto", "none", "weights", "peaks", "equal"]


@dataclass(frozen=True)
class Scheme:
    """Element types: of tensors between operators (None: they stay float), of weights, of biases.

    ``explicit`` weights stand behind a DEQUANTIZE, so that operators compute with floats.
    """

    activations: TensorType | None
    weights: TensorType
    bias: TensorType = TensorType.INT32
    explicit: bool = False

    @property
    def most(self) -> int:
        """The largest code of a weight, the smallest being minus that."""
        return int(2 ** (self.weight_bits - 1) - 1)

    @property
    def activation_bits(self) -> int | None:
        """Bits of an element between operators, None where they stay float."""
        return None if self.activations is None else element_bits(self.activations)

    @property
    def weight_bits(self) -> int:
        """Bits of a weight."""
        return element_bits(self.weights) or 0


SCHEMES = {
    "int8": Scheme(TensorType.INT8, TensorType.INT8),
    "w4a8": Scheme(TensorType.INT8, TensorType.INT4),
    "int16x8": Scheme(TensorType.INT16, TensorType.INT8, TensorType.INT64),
    "dynamic": Scheme(None, TensorType.INT8),
    "weights": Scheme(None, TensorType.INT8, explicit=True),
    "float16": Scheme(None, TensorType.FLOAT16, explicit=True),
}

ENDS = {
    "float32": TensorType.FLOAT32,
    "int8": TensorType.INT8,
    "uint8": TensorType.UINT8,
    "int16": TensorType.INT16,
}
"""What a file's inputs and outputs may be."""


@dataclass(frozen=True)
class UniformOptions:
    """How a network gets uniform integers.

    ``ranges`` is a rule of ``calibration.ranges``; ``rounding`` of weights keeps each layer's
    output close, or takes the nearest integers. ``rescale`` is a rule of ``uniform.rescale``,
    "auto" the best of them between every two layers. ``input_type`` and ``output_type`` are those
    of the file: integers have the scale and zero point that the tensor has inside.
    """

    scheme: str = "int8"
    granularity: Granularity = "channel"
    ranges: str = "mse"
    rounding: Rounding = "output_aware"
    rescale: Rescale = "auto"
    input_type: str = "float32"
    output_type: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what there is not, and what does not go together."""
        self._check("scheme", SCHEMES)
        self._check("granularity", get_args(Granularity))
        self._check("rounding", get_args(Rounding))
        self._check("rescale", get_args(Rescale))
        inside = self.types.activations
        for name in ("input_type", "output_type"):
            self._check(name, ENDS)
            end = ENDS[getattr(self, name)]
            near = (TensorType.FLOAT32, inside, *_NEAR.get(inside, ()))
            if end not in near:
                raise QuantizeError(f"{name} {end.name} does not go with the scheme {self.scheme}")

    def _check(self, name: str, possible: object) -> None:
        found = getattr(self, name)
        assert hasattr(possible, "__iter__"), "names can be listed"
        names = list(possible)
        if found not in names:
            raise QuantizeError(f"{name} is {found!r}: {', '.join(names)} are possible")

    @property
    def types(self) -> Scheme:
        """The element types of the scheme."""
        return SCHEMES[self.scheme]

    @property
    def needs_data(self) -> bool:
        """Whether the scheme learns from records."""
        return self.types.activations is not None


_NEAR: dict[TensorType | None, tuple[TensorType, ...]] = {TensorType.INT8: (TensorType.UINT8,)}
"""What tensors of a type can be at the ends besides: shifted by half the range."""
