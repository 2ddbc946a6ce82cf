"""Schemes of uniform quantization: what inputs, weights and biases of layers become."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol, get_args

import numpy as np

from luciole.ir import Graph, Op, TensorType
from luciole.ir.analysis.weights import has_weights, table_constant, weight_constant
from luciole.ir.blockwise import LEAST_SCALE
from luciole.ir.dtypes import element_bits
from luciole.ir.errors import expect
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.assignment.layer_format import (
    MOST_LEARNED,
    SHORT,
    Float,
    Integers,
    LayerFormat,
    StoredLevels,
    parse,
    scheme_format,
)
from luciole.lquantizer.assignment.minifloat_options import MINIFLOAT
from luciole.lquantizer.errors import OptionsError, QuantizeError, check_drop, check_seed

Granularity = Literal["channel", "tensor"]
Rounding = Literal["output_aware", "nearest"]
Rescale = Literal["auto", "none", "weights", "peaks", "equal"]
Source = str | os.PathLike[str] | Mapping[str, Any]
"""Settings for single layers: a JSON file or its content."""


@dataclass(frozen=True)
class Scheme:
    """Element types: of tensors between operators (None: they stay float), of weights, of biases.

    ``explicit`` weights stand behind a DEQUANTIZE, so that operators compute with floats. Weights
    with ``levels`` are codes of so many bits, which stand for learned integers of their type. A
    ``block`` of so many weights has a scale of its own.
    """

    activations: TensorType | None
    weights: TensorType
    bias: TensorType = TensorType.INT32
    explicit: bool = False
    levels: int | None = None
    block: int | None = None

    @property
    def most(self) -> int:
        """The largest code of a weight, the smallest being minus that."""
        return int(2 ** ((element_bits(self.weights) or 1) - 1) - 1)

    @property
    def activation_bits(self) -> int | None:
        """Bits of an element between operators, None where they stay float."""
        return None if self.activations is None else element_bits(self.activations)

    @property
    def weight_bits(self) -> int:
        """Bits of a weight."""
        return self.levels or element_bits(self.weights) or 0

    @property
    def rounds_to_integers(self) -> bool:
        """Whether weights have as many steps for the largest as for the smallest."""
        return self.weights != TensorType.FLOAT16

    @property
    def learns_weights(self) -> bool:
        """Whether records are not needed, but weights are learned where there are some."""
        return self.activations is None and self.weights == TensorType.INT4

    @property
    def wider(self) -> Scheme:
        """The same with weights of 8 bits, for operators that have no kernel for fewer."""
        narrow = self.weights == TensorType.INT4 and not self.explicit
        return replace(self, weights=_BYTE) if narrow else self

    @property
    def by_channel(self) -> bool:
        """Whether TFLite's kernels take a scale for each of a layer's outputs: those on UINT8 take
        one for all.
        """
        return self.weights != TensorType.UINT8


_BYTE = TensorType.INT8

FROM_FAKE_QUANT = "from_fake_quant"
"""The scheme that reads a file's FAKE_QUANT operators: it becomes the one whose element types they
ask for."""

BYTES, NIBBLES = Integers(8, 8), Integers(4, 8)
"""The default format of layers, and the smallest one."""
_BETWEEN = {
    8: Scheme(TensorType.INT8, TensorType.INT8),
    16: Scheme(TensorType.INT16, TensorType.INT8, TensorType.INT64),
}
"""Integers of 8 and of 16 bits between operators, with weights of 8 bits."""
_NIBBLES_ALONE = Scheme(None, TensorType.INT4, explicit=True)
BLOCKS = (32, 64, 128, 256)
"""Weights that may have a scale in common, in LiteRT and in recipes of AI Edge Quantizer."""
SCHEMES: dict[LayerFormat, Scheme] = {
    BYTES: _BETWEEN[8],
    Integers(8, 8, unsigned=True): Scheme(TensorType.UINT8, TensorType.UINT8),
    NIBBLES: Scheme(TensorType.INT8, TensorType.INT4),
    Integers(8, 16): _BETWEEN[16],
    Integers(4, 16): Scheme(TensorType.INT16, TensorType.INT4, TensorType.INT64),
    Integers(8, None): Scheme(None, TensorType.INT8),
    Integers(4, None): Scheme(None, TensorType.INT4),
    StoredLevels(8): Scheme(None, TensorType.INT8, explicit=True),
    StoredLevels(4): _NIBBLES_ALONE,
    **{StoredLevels(4, size): Scheme(None, TensorType.INT4, block=size) for size in BLOCKS},
    Float(16): Scheme(None, TensorType.FLOAT16, explicit=True),
    **{
        Integers(bits, inputs): replace(types, levels=bits)
        for inputs, types in _BETWEEN.items()
        for bits in range(1, MOST_LEARNED + 1)
    },
}
"""The element types of each format that uniform quantization has."""

LEARNED = "learned"
"""The scheme that is not a uniform one."""
RECOMMENDED = str(NIBBLES)
"""The scheme where nothing is asked for: on a convolutional, a tabular and a denoising network its
files are both smaller and closer to the float one than learned levels of 3 bits, and run anywhere.
"""
MIXED = "mixed"
"""The scheme that gives each layer one of its own."""
OTHERS = (LEARNED, MINIFLOAT)
"""Schemes that have options of their own."""
UNIFORM = (
    *(name for name in SHORT if SHORT[name] in SCHEMES),
    *(str(format) for format in SCHEMES if format not in SHORT.values()),
    FROM_FAKE_QUANT,
)
"""Names of schemes of uniform quantization."""
FLOAT = Float()
"""The format of an operator that stays as it was."""

Chosen = LayerFormat | None
"""The format that an operator is to get; None: the one that FAKE_QUANT operators ask for."""


def chosen_format(scheme: str) -> Chosen:
    """Read the format that a scheme names for single operators. Raises QuantizeError for none."""
    return None if scheme == FROM_FAKE_QUANT else scheme_format(scheme)


def is_for_operators(scheme: str | None) -> bool:
    """Check whether a scheme names a uniform format for single operators, or floats."""
    try:
        chosen = chosen_format(scheme or "")
    except QuantizeError:
        return False
    return chosen is None or chosen == FLOAT or chosen in SCHEMES


def uniform_types(chosen: Mapping[Op, Chosen], read: LayerFormat = BYTES) -> dict[Op, Scheme]:
    """Leave the operators with uniform formats, and give their element types; ``read`` is the
    format that FAKE_QUANT operators ask for.
    """
    formats = {op: read if one is None else one for op, one in chosen.items()}
    return {op: _for_layer(op, SCHEMES[one]) for op, one in formats.items() if one in SCHEMES}


def without_blocks(chosen: Mapping[Op, Chosen], types: Mapping[Op, Scheme]) -> list[Op]:
    """List the layers that were to have weights in blocks, and have a scale for each output."""
    asked = [op for op, one in chosen.items() if isinstance(one, StoredLevels) and one.block]
    return [op for op in asked if types[op].block is None and has_weights(op)]


def _for_layer(op: Op, types: Scheme) -> Scheme:
    """Return the scheme of a layer: without blocks where its kernels know none, or weights do not
    divide into them, or are too small for their scales. Each row of a table of 4 bits is a block
    where it has no smaller ones: then its scale has 2 bytes.
    """
    if types.block is not None and _takes_blocks(op, types.block, types.most):
        return types
    table = table_constant(op) if types.learns_weights else None
    row = table.dims[-1] if table is not None and len(table.dims) == 2 else 0
    if row and row % 2 == 0 and _takes_blocks(op, row, types.most):
        return replace(types, block=row)
    return types if types.block is None else _NIBBLES_ALONE


def _takes_blocks(op: Op, size: int, most: int) -> bool:
    is_read = isinstance(op, FullyConnected | EmbeddingLookup)
    weights = weight_constant(op) if is_read else None
    if weights is None or not weights.dims or weights.dims[-1] % size:
        return False
    peak = float(np.abs(weights.contents).max(initial=0))
    return peak > 8 * most * LEAST_SCALE


def of_table(format: Chosen) -> LayerFormat | None:
    """Return the format of rows that become real numbers as they are looked up: 4 bits beside
    integers of fewer than 8. None where a table's format has no such rows.
    """
    if isinstance(format, Integers) and format.weights < BYTES.weights:
        return StoredLevels(4)
    types = SCHEMES.get(format or BYTES)
    alone = types is not None and types.activations is None and types.rounds_to_integers
    return format if alone else None


class PerOperator(Protocol):
    """Chooses the format of each operator."""

    def choices(self, graph: Graph) -> Mapping[Op, Chosen]:
        """Give the format of every operator, floats where it stays as it is."""

    def ends(self, graph: Graph) -> Mapping[str, str]:
        """Return the types of inputs and outputs, by the options' names, that nobody chose."""

    def report(self) -> Iterable[str]:
        """Return a line for every rule, with the operators that it chose for."""


ENDS = {
    "float32": TensorType.FLOAT32,
    "int8": TensorType.INT8,
    "uint8": TensorType.UINT8,
    "int16": TensorType.INT16,
}
"""Possible types of a file's inputs and outputs."""


@dataclass(frozen=True)
class UniformOptions:
    """How a network gets uniform integers.

    ``ranges`` is a rule of ``calibration.ranges``; ``rounding`` of weights keeps each layer's
    output close, or takes the nearest integers. ``rescale`` is a rule of ``network.rescale``,
    "auto" the best of them between every two layers. ``symmetric`` tensors reach equally far on
    both sides of 0 where they are on both. ``input_type`` and ``output_type`` are those
    of the file: integers have the scale and zero point that the tensor has inside.
    ``config`` or ``per_operator`` chooses other schemes, or none, for single operators. The scheme
    "mixed" chooses by itself so that at most ``target_drop`` points of accuracy are lost (1 unless
    it is given), weights of ``least_bits`` and more: luciole alone reads those of fewer than 4.
    ``ranges_from`` are saved ranges: a file, its content or a ``Ranges``, or a list of them.
    """

    scheme: str = "int8"
    granularity: Granularity = "channel"
    ranges: str = "mse"
    rounding: Rounding = "output_aware"
    rescale: Rescale = "auto"
    symmetric: bool = False
    input_type: str = "float32"
    output_type: str = "float32"
    config: Source | None = None
    target_drop: float | None = None
    least_bits: int = 1
    seed: int = 0
    ranges_from: object = None
    per_operator: PerOperator | None = None

    def __post_init__(self) -> None:
        """Refuse unknown choices, and choices that do not go together."""
        expect(self.scheme, str, "scheme: a text")
        is_known = self.scheme == MIXED or is_for_operators(self.scheme)
        if self.scheme == str(FLOAT) or not is_known:
            if ":" in self.scheme:
                parse(self.scheme)  # which refuses bits that there are not
            self._check("scheme", [*UNIFORM, MIXED], others=OTHERS)
        self._check("granularity", get_args(Granularity))
        self._check("rounding", get_args(Rounding))
        self._check("rescale", get_args(Rescale))
        check_seed(self.seed)
        check_drop(self.target_drop)
        expect(self.least_bits, (int, np.integer), "least_bits: a whole number")
        if not 1 <= self.least_bits <= 4:
            raise OptionsError(f"least_bits is {self.least_bits}: 1 to 4 are possible")
        for name in ("target_drop", "least_bits"):
            if getattr(self, name) != getattr(UniformOptions, name) and self.scheme != MIXED:
                raise OptionsError(f"{name} does not go with the scheme {self.scheme!r}")
        if self.config is not None and self.scheme == MIXED:
            raise OptionsError("config does not go with the scheme 'mixed', which makes its own")
        if self.config is not None and self.per_operator is not None:
            raise OptionsError("config does not go with per_operator")
        if self.granularity == "tensor" and self.types.levels is not None:
            why = "whose outputs have scales of their own"
            raise OptionsError(f"granularity 'tensor' does not go with {self.scheme}, {why}")
        inside = self.types.activations
        for name in ("input_type", "output_type"):
            self._check(name, ENDS)
            end = ENDS[getattr(self, name)]
            near = (TensorType.FLOAT32, inside, *_NEAR.get(inside, ()))
            if end not in near:
                raise OptionsError(f"{name} {end.name} does not go with the scheme {self.scheme}")

        self._check_rescale()
        if self.ranges_from is not None and self.types.activations is None:
            raise OptionsError(f"ranges_from does not go with the scheme {self.scheme}")

    def _check_rescale(self) -> None:
        """Refuse a rule that nothing would obey."""
        if self.rescale in ("auto", "none"):
            return
        if self.ranges_from is not None:
            raise OptionsError("rescale does not go with ranges_from, which say how it was done")
        if self.scheme == FROM_FAKE_QUANT:
            why = "whose ranges are those of channels as they are"
            raise OptionsError(f"rescale does not go with the scheme {self.scheme}, {why}")
        if self.config is None and self.per_operator is None and not self.types.rounds_to_integers:
            why = "whose weights have steps of their own each"
            raise OptionsError(f"rescale does not go with the scheme {self.scheme}, {why}")

    def _check(self, name: str, possible: Iterable[str], others: Iterable[str] = ()) -> None:
        """Refuse an impossible choice; ``others`` are possible with options of another kind."""
        choice, names = getattr(self, name), list(possible)
        expect(choice, str, f"{name}: a text")
        if choice not in names:
            known = [*names, *others]
            near = get_close_matches(choice, known, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise OptionsError(f"{name} is {choice!r}: {', '.join(known)} are possible{hint}")

    @property
    def format(self) -> LayerFormat:
        """The format of layers: the one that is begun with, of the scheme "mixed"."""
        if self.scheme == MIXED:
            return NIBBLES
        return BYTES if self.scheme == FROM_FAKE_QUANT else scheme_format(self.scheme)

    @property
    def word(self) -> str:
        """The word of the format, or the name of a scheme that chooses formats."""
        return self.scheme if self.scheme in (MIXED, FROM_FAKE_QUANT) else str(self.format)

    @property
    def types(self) -> Scheme:
        """The element types of the format."""
        return SCHEMES[self.format]

    def for_graph(self, graph: Graph) -> UniformOptions:
        """Copy the options with the types that a graph's ends get."""
        ends = {} if self.per_operator is None else dict(self.per_operator.ends(graph))
        input_type = ends.get("input_type", self.input_type)
        output_type = ends.get("output_type", self.output_type)
        return replace(self, input_type=input_type, output_type=output_type)

    @property
    def takes_data(self) -> bool:
        """Whether the scheme learns from records."""
        return learns(self.scheme)

    @property
    def needs_data(self) -> bool:
        """Whether there is nothing else to learn from."""
        return self.takes_data and not self.does_without_data

    @property
    def does_without_data(self) -> bool:
        """Whether ranges are given, and weights are not fitted."""
        if self.scheme == FROM_FAKE_QUANT:
            return True
        return self.ranges_from is not None and self.rounding == "nearest"

    def channels(self, types: Scheme) -> bool:
        """Check whether each of a layer's outputs has a scale of its own."""
        return self.granularity == "channel" and types.by_channel


def learns(scheme: str) -> bool:
    """Check whether a scheme, of a network or of single operators, learns from records."""
    if scheme in (LEARNED, MIXED, FROM_FAKE_QUANT):
        return True
    format = scheme_format(scheme)
    return format != FLOAT and (format not in SCHEMES or SCHEMES[format].activations is not None)


_NEAR: dict[TensorType | None, tuple[TensorType, ...]] = {
    TensorType.INT8: (TensorType.UINT8,),
    TensorType.UINT8: (TensorType.INT8,),
}
"""What tensors of a type can be at the ends besides: shifted by half the range."""
