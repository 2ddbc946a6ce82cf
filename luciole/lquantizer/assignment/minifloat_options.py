"""Choose how a network of minifloats is to be."""

from __future__ import annotations

from dataclasses import dataclass

from luciole.ir.minifloat import Minifloat
from luciole.lquantizer.errors import OptionsError, check_drop

MINIFLOAT = "minifloat"
"""The scheme's name."""


@dataclass(frozen=True)
class MinifloatOptions:
    """How a network gets minifloats: ``exponent`` and ``mantissa`` are their bits.

    Results of all operators are rounded, or with ``layers_only`` just what layers read. With
    ``scaled`` each tensor has a power of two of its own, learned from data; else all numbers
    are plain. With ``target_drop`` the fewest bits are searched that change at most so many points
    of a classifier's answers on the data, and with ``per_layer`` each layer may have fewer bits of
    mantissa than that.
    """

    exponent: int | None = None
    mantissa: int | None = None
    scaled: bool = False
    layers_only: bool = False
    target_drop: float | None = None
    per_layer: bool = False

    def __post_init__(self) -> None:
        """Refuse bits that there are not, and choices that do not go together."""
        chosen = (self.exponent is not None, self.mantissa is not None)
        searched = self.target_drop is not None
        if any(chosen) if searched else not all(chosen):
            raise OptionsError(
                "the scheme minifloat takes exponent and mantissa, or target_drop to search them"
            )
        check_drop(self.target_drop)
        if self.per_layer and not searched:
            raise OptionsError("per_layer goes with target_drop")
        for fault in () if searched else self.numbers.faults():
            raise OptionsError(fault)

    @property
    def numbers(self) -> Minifloat:
        """The numbers asked for, where they are not searched."""
        assert self.exponent is not None, "checked when it was made"
        assert self.mantissa is not None, "checked when it was made"
        return Minifloat(self.exponent, self.mantissa)

    @property
    def needs_data(self) -> bool:
        """Whether scales or bits are chosen by data."""
        return self.scaled or self.target_drop is not None
