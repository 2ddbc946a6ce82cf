"""Choose how to quantize: one class for each method, and what goes together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, TypedDict

from luciole.lquantizer.assignment.config import Choice, Config, widths
from luciole.lquantizer.assignment.minifloat_options import MINIFLOAT, MinifloatOptions
from luciole.lquantizer.assignment.schemes import (
    FLOAT,
    LEARNED,
    PER_LAYER,
    Granularity,
    Rescale,
    Rounding,
    Source,
    UniformOptions,
)
from luciole.lquantizer.errors import QuantizeError, check_drop, check_seed
from luciole.lquantizer.formats.levels import Settings

MethodName = Literal["fit", "published"]


class FoundRanges(Protocol):
    """Ranges as a ``Result`` has them."""

    def to_json(self) -> dict[str, Any]:
        """Turn the ranges into plain JSON values."""


RangesSource = Source | FoundRanges | Sequence[Source | FoundRanges]
"""Saved ranges: files, their contents, or as they were found."""


class Choices(TypedDict, total=False):
    """Everything that ``luciole.quantize`` takes by keyword; each method and each scheme takes a
    part of it.
    """

    scheme: str
    compatible: Literal["one"] | None
    exponent: int | None
    mantissa: int | None
    scaled: bool
    layers_only: bool
    per_layer: bool
    granularity: Granularity | Literal["layer"]
    ranges: str
    rounding: Rounding
    rescale: Rescale
    symmetric: bool
    input_type: str
    output_type: str
    ranges_from: RangesSource | None
    method: MethodName
    encode_bits: int | str
    input_bits: int | None
    weight_bits: int | None
    config: Source | Sequence[Mapping[str, Any]] | None
    recipe: Source | Sequence[Mapping[str, Any]] | None  # what config was called
    settings: Settings | None
    seed: int
    all_layers: bool
    weights_only: bool
    uniform: bool
    unroll_lstms: bool
    spared: str | None
    target_size: int | None
    target_drop: float | None
    levels_only: bool


@dataclass(frozen=True)
class QuantizeOptions:
    """What every method takes.

    ``encode_bits`` is the width of inputs and weights, or both in one word as in "w2a4", unless
    ``input_bits`` or ``weight_bits`` say otherwise; ``config`` (a JSON file or its content) chooses
    layer by layer. ``all_layers`` quantizes the ends of convolutional networks too.
    """

    method: ClassVar[str] = ""
    encode_bits: int | str = 3
    input_bits: int | None = None
    weight_bits: int | None = None
    config: Source | None = None
    seed: int = 0
    all_layers: bool = False

    def __post_init__(self) -> None:
        """Refuse a seed that is none."""
        check_seed(self.seed)

    @property
    def default(self) -> Choice:
        """The choice for every layer that nothing else speaks of."""
        weights, inputs = widths(self.encode_bits)
        return Choice(
            inputs if self.input_bits is None else self.input_bits,
            weights if self.weight_bits is None else self.weight_bits,
        )

    def per_layer(self) -> Config:
        """Make the config: the choice for every layer. Raises QuantizeError that says what was not
        understood.
        """
        found = Config.of(self.config, self.default)
        found.all_layers |= self.all_layers
        return found


@dataclass(frozen=True)
class PublishedOptions(QuantizeOptions):
    """The baseline, for dense layers; ``settings`` say how bases are fitted."""

    method: ClassVar[str] = "published"
    settings: Settings | None = None


@dataclass(frozen=True)
class FitOptions(QuantizeOptions):
    """The fit that keeps each layer's output close.

    ``weights_only`` keeps layers' inputs float and writes ONE's BCQ_FULLY_CONNECTED; ``uniform``
    levels are evenly spaced;
    ``unroll_lstms`` turns LSTMs into dense layers first, whose state starts at zero in each run.
    ``spared`` is what becomes of layers without learned levels: "float", or a uniform scheme such
    as "int8", which then also holds for what only moves elements beside them.
    With ``target_size`` (bytes) or ``target_drop`` (points of a classifier's answers that may
    change) each layer gets as many bits as pay: 8-bit integers among them unless ``levels_only``,
    which fine-tuning wants.
    """

    method: ClassVar[str] = "fit"
    weights_only: bool = False
    uniform: bool = False
    unroll_lstms: bool = False
    spared: str = FLOAT
    target_size: int | None = None
    target_drop: float | None = None
    levels_only: bool = False

    def __post_init__(self) -> None:
        """Refuse a target beside widths, two targets, and what spared layers cannot be."""
        super().__post_init__()
        check_drop(self.target_drop)
        possible = [name for name in PER_LAYER if name != LEARNED]
        if self.spared not in possible:
            raise QuantizeError(f"spared is {self.spared!r}: {', '.join(possible)} are possible")
        given = [name for name in ("target_drop", "target_size") if getattr(self, name) is not None]
        widths = ("input_bits", "weight_bits", "weights_only")
        given += [name for name in widths if given and getattr(self, name)]
        if len(given) > 1:
            raise QuantizeError(f"{given[0]} does not go with {given[1]}")

    def refuse_targets(self, other: str) -> None:
        """Raise QuantizeError where there is a target beside something else."""
        for name in ("target_drop", "target_size"):
            if getattr(self, name) is not None:
                raise QuantizeError(f"{name} does not go with {other}")

    @property
    def default(self) -> Choice:
        """The choice for every layer that nothing else speaks of."""
        widths = super().default
        bits = (widths.input_bits, widths.weight_bits)
        return Choice(*bits, weights_only=self.weights_only, uniform=self.uniform)


_METHODS: dict[str, type[QuantizeOptions]] = {c.method: c for c in (FitOptions, PublishedOptions)}


def options_of(choices: Choices) -> QuantizeOptions | UniformOptions | MinifloatOptions:
    """Turn keywords into the options of the scheme that they name, or else of the method ("fit"
    unless they do).

    Raises QuantizeError for choices that the method does not know, TypeError for names that no
    method knows.
    """
    off = (None, False)  # 0 is a choice: it is refused where it means nothing
    given = {n: choice for n, choice in choices.items() if not any(choice is o for o in off)}
    _rename(given, "recipe", "config")
    scheme = given.pop("scheme", LEARNED)
    if is_few_bits(scheme):
        _refuse_others(given, FitOptions, f"scheme {scheme!r}")
        defaults = {"encode_bits": scheme, "uniform": True, "spared": "int8"}
        return FitOptions(**{**defaults, **given})  # type: ignore[arg-type]  # fields
    if scheme == MINIFLOAT:
        _refuse_others(given, MinifloatOptions, f"scheme {scheme!r}")
        return MinifloatOptions(**given)  # type: ignore[arg-type]  # the names are fields
    if scheme != LEARNED:
        _refuse_others(given, UniformOptions, f"scheme {scheme!r}")
        return UniformOptions(scheme=str(scheme), **given)  # type: ignore[arg-type]  # fields
    method = given.pop("method", FitOptions.method)
    if method not in _METHODS:
        names = " and ".join(map(repr, _METHODS))
        raise QuantizeError(f"method is {method!r}: {names} are possible")
    found = _METHODS[str(method)]
    _refuse_others(given, found, f"method {method!r}")
    return found(**given)  # type: ignore[arg-type]  # the names are fields, their types Choices'


def is_few_bits(scheme: object) -> bool:
    """Tell whether a scheme such as "w4a4" is of evenly spaced levels: there are no integers of so
    few bits between operators, but layers read their inputs in them.
    """
    found = _FEW_BITS.fullmatch(scheme) if isinstance(scheme, str) else None
    return found is not None and scheme not in PER_LAYER


_FEW_BITS = re.compile(r"w[1-4]a[1-8]")


def _refuse_others(given: Mapping[str, object], options: type, what: str) -> None:
    """Refuse choices that a class of options has no field for."""
    for name in sorted(given.keys() - {field.name for field in fields(options)}):
        if name not in Choices.__annotations__:
            raise TypeError(f"quantize() got an unexpected keyword argument {name!r}")
        raise QuantizeError(f"{name} does not go with the {what}")


def _rename(given: dict[str, object], old: str, new: str) -> None:
    """Move a choice from a name that it had. Raises QuantizeError where both are given."""
    if old in given:
        if new in given:
            raise QuantizeError(f"{old} is the old name of {new}: give one of them")
        given[new] = given.pop(old)
