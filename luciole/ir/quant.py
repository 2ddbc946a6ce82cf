"""Describe an operator for a quantizer: where its weights are, and how its result is quantized.

The rules for results are those of TFLite's 8-bit quantization specification
(https://ai.google.dev/edge/litert/models/quantization_spec) and, for 16 bits, of its converter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from luciole.schema.enums import TensorType

Grid = tuple[float, int]
"""Scale and zero point."""


@dataclass(frozen=True)
class Free:
    """The result has a scale and zero point of its own, where it is quantized at all."""


FREE = Free()


@dataclass(frozen=True, init=False)
class Like:
    """The result and the named operands have one scale and zero point between them: elements are
    moved or picked as they are. It holds for each result with elements of the operands.

    ``rescaled`` are the element types in which TFLite's kernels bring operands of other scales to
    the result's; where there are any, luciole's kernels do so in every type. An operator whose
    results are ``computed`` may be computed in floats where scales differ: Samsung ONE gives each
    tensor its own.
    """

    operands: tuple[str, ...]
    rescaled: tuple[TensorType, ...]
    computed: bool

    def __init__(
        self, *operands: str, rescaled: tuple[TensorType, ...] = (), computed: bool = False
    ) -> None:
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "rescaled", rescaled)
        object.__setattr__(self, "computed", computed)


@dataclass(frozen=True)
class Fixed:
    """The result's scale and zero point follow from the operator's range, by element type; None for
    a type that kernels do not have.
    """

    int8: Grid
    uint8: Grid
    int16: Grid | None = None

    def grid(self, dtype: TensorType) -> Grid | None:
        """Scale and zero point of a result of this type."""
        by_type = {
            TensorType.INT8: self.int8,
            TensorType.UINT8: self.uint8,
            TensorType.INT16: self.int16,
        }
        return by_type.get(dtype)


Result = Free | Like | Fixed


@dataclass(frozen=True)
class Saturation:
    """The magnitudes of the operand beyond which the result lies within half a step of its limit:
    of results of 8 bits, and of 16.
    """

    in_8_bits: float
    in_16_bits: float

    def reach(self, dtype: TensorType) -> tuple[float, float]:
        """Return the least and the largest number that a result of a type tells from all beyond;
        both have codes of the same type around 0, of which the lowest has no opposite.
        """
        if dtype == TensorType.INT16:
            return -self.in_16_bits, self.in_16_bits
        return -self.in_8_bits * 128 / 127, self.in_8_bits


@dataclass(frozen=True)
class Contrast:
    """How far below the largest element of its row, the last axis, an element of the operand must
    lie so that the result is that of -inf: in results of 8 bits and of 16, for rows of one element;
    ln(n) more for n. The attribute named ``factor``, where there is one, multiplies the operand.
    """

    in_8_bits: float
    in_16_bits: float
    factor: str | None = None

    def distance(self, dtype: TensorType, row: int) -> float:
        """Return the distance for a row of elements, once they are multiplied."""
        least = self.in_16_bits if dtype == TensorType.INT16 else self.in_8_bits
        return least + math.log(max(row, 1))


@dataclass(frozen=True)
class Pole:
    """An operand that an operator has infinite results for, or none: where it is 0 and perhaps
    below; ``finite`` says that 0 itself is no such place. Where an ``exponent`` is named, that
    operand's negative numbers make the pole.

    ``refused`` are the signs (0, -1) of numbers that TFLite's kernels on integers do not compute
    with; of others near the pole they make the result's largest or least integer.
    """

    operand: str
    refused: tuple[int, ...] = (0,)
    finite: bool = False
    exponent: str | None = None

    @property
    def spoken_of(self) -> tuple[str, ...]:
        """The operands that it names."""
        return (self.operand,) if self.exponent is None else (self.operand, self.exponent)


@dataclass(frozen=True)
class Versions:
    """The first versions of an operator with integers that TFLite's runtimes know, by the element
    type of its input; ``int4`` and ``hybrid`` of a layer, for weights of 4 bits, and for integer
    weights under a float input; 1 of ``int4`` and 0 of ``int16`` where there is none.
    ``hybrid_int4`` says whether weights of 4 bits may stand under a float input.

    They are those of TFLite's ``tools/versioning/op_version.cc``.
    """

    int8: int = 2
    int16: int = 3
    int4: int = 1
    hybrid: int = 1
    hybrid_int4: bool = True

    @property
    def takes_int4(self) -> bool:
        """Whether there is a version for weights of 4 bits."""
        return self.int4 > 1

    def of(self, input: TensorType, weights: TensorType | None) -> int:
        """Find the first version with an input and, of a layer, weights of these types."""
        if weights == TensorType.INT4:
            return self.int4
        by_type = {TensorType.INT8: self.int8, TensorType.INT16: self.int16, TensorType.UINT8: 1}
        plain = (TensorType.FLOAT32, None)
        return by_type.get(input, self.hybrid if weights not in plain else 1)


FIRST, SECOND = Versions(1, 1), Versions(2, 2)
"""Of an operator whose versions are not about integers."""


@dataclass(frozen=True)
class Quant:
    """Facts that a quantizer needs about an operator that may compute with integers: in which types
    its kernels mind no scales (``unscaled``: real numbers have no form there), which operand is the
    weight (None: it has none), along which axis its output channels lie, which operand is the bias,
    what binds the scale and zero point of its result, since which versions it does, and which
    ``input`` a layer multiplies its weight with. With constants of its ``own`` each has an element
    type and scales that follow from the operator's class. ``saturation`` and ``contrast`` say where
    its result does not depend on its only operand any more; ``terms`` are the signs of the operands
    of a sum. The rows of a ``table`` are picked.
    """

    weight: str | None = None
    axis: int = 0
    bias: str | None = None
    unscaled: tuple[TensorType, ...] = ()
    result: Result = FREE
    since: Versions = Versions()
    input: str = "input"
    own: bool = False
    saturation: Saturation | None = None
    contrast: Contrast | None = None
    terms: tuple[int, ...] = ()
    table: str | None = None

    @property
    def stored(self) -> str | None:
        """The operand that holds most of an operator's constants: weights, or a table."""
        return self.weight or self.table

    @property
    def spoken_of(self) -> tuple[str, ...]:
        """The operands that it names."""
        shared = self.result.operands if isinstance(self.result, Like) else ()
        multiplied = None if self.weight is None else self.input
        every = (self.stored, self.bias, *shared, multiplied)
        return tuple(name for name in every if name is not None)

    def fixed(self, dtype: TensorType) -> Grid | None:
        """Scale and zero point that a result of this type must have, None where it may have any."""
        return self.result.grid(dtype) if isinstance(self.result, Fixed) else None
