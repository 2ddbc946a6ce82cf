"""Choose how to quantize: one class for each method, and what goes together."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol

from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.assignment.layer_format import (
    LayerFormat,
    Levels,
    Minifloat,
    levels_format,
    scheme_format,
)
from luciole.lquantizer.assignment.minifloat_options import MINIFLOAT, MinifloatOptions
from luciole.lquantizer.assignment.schemes import (
    BYTES,
    FLOAT,
    LEARNED,
    RECOMMENDED,
    UNIFORM,
    Chosen,
    Source,
    UniformOptions,
    chosen_format,
    is_for_operators,
)
from luciole.lquantizer.errors import OptionsError, QuantizeError, check_drop, check_seed
from luciole.lquantizer.formats.levels import Settings

MethodName = Literal["fit", "published"]


class FoundRanges(Protocol):
    """Ranges as a ``Result`` has them."""

    def to_json(self) -> dict[str, Any]:
        """Turn the ranges into plain JSON values."""


RangesSource = Source | FoundRanges | Sequence[Source | FoundRanges]
"""Saved ranges: files, their contents, or as they were found."""


ConfigSource = Source | Sequence[Mapping[str, Any]]
"""Settings for single layers, or another tool's: a JSON file or its content."""


@dataclass(frozen=True)
class QuantizeOptions:
    """The options of every method.

    ``encode_bits`` is the width of inputs and weights, or a word such as "levels:w2a4", or
    "even:w2a4", unless ``input_bits`` or ``weight_bits`` say
    otherwise; ``config`` (a JSON file or its content) chooses layer by layer. ``all_layers``
    quantizes the ends of convolutional networks too.
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
        levels = levels_format(self.encode_bits)
        inputs = levels.inputs if self.input_bits is None else self.input_bits
        return Choice(
            levels.weights if inputs is None else inputs,
            levels.weights if self.weight_bits is None else self.weight_bits,
            weights_only=inputs is None,
            uniform=levels.even,
        )

    def per_layer(self) -> Config:
        """Make the config: the choice for every layer. Raises QuantizeError that says what was not
        understood.
        """
        config = Config.of(self.config, self.default)
        config.all_layers |= self.all_layers
        return config


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
    as "int8" (the usual one where no target finds widths), which then also holds for what only
    moves elements beside them.
    With ``target_size`` (bytes) or ``target_drop`` (points of a classifier's answers that may
    change) each layer gets as many bits as pay: 8-bit integers among them unless ``levels_only``,
    which fine-tuning wants.
    """

    method: ClassVar[str] = "fit"
    weights_only: bool = False
    uniform: bool = False
    unroll_lstms: bool = False
    spared: str | None = None
    target_size: int | None = None
    target_drop: float | None = None
    levels_only: bool = False

    def __post_init__(self) -> None:
        """Refuse a target beside widths, two targets, and impossible formats of spared layers."""
        super().__post_init__()
        check_drop(self.target_drop)
        if self.spared is not None and not is_for_operators(self.spared):
            possible = ", ".join((*UNIFORM, str(FLOAT)))
            raise OptionsError(f"spared is {self.spared!r}: {possible} are possible")
        chosen = [
            name for name in ("target_drop", "target_size") if getattr(self, name) is not None
        ]
        widths = ("input_bits", "weight_bits", "weights_only")
        chosen += [name for name in widths if chosen and getattr(self, name)]
        if len(chosen) > 1:
            raise OptionsError(f"{chosen[0]} does not go with {chosen[1]}")

    def refuse_targets(self, other: str) -> None:
        """Raise QuantizeError where there is a target beside something else."""
        for name in ("target_drop", "target_size"):
            if getattr(self, name) is not None:
                raise OptionsError(f"{name} does not go with {other}")

    @property
    def default(self) -> Choice:
        """The choice for every layer that nothing else speaks of."""
        base = super().default
        weights_only = self.weights_only or base.weights_only
        return replace(base, weights_only=weights_only, uniform=self.uniform or base.uniform)

    @property
    def spared_format(self) -> Chosen:
        """The format of layers without learned levels: ``SPARED`` unless a target is there."""
        has_target = self.target_size is not None or self.target_drop is not None
        usual = str(FLOAT) if has_target else SPARED
        return chosen_format(usual if self.spared is None else self.spared)


SPARED = str(BYTES)
"""What layers without levels become unless it is said: floats there were up to nine tenths of small
networks' files. Where a target finds widths, nothing is left over."""

_METHODS: dict[str, type[QuantizeOptions]] = {c.method: c for c in (FitOptions, PublishedOptions)}


def options_of(
    choices: Mapping[str, object],
) -> QuantizeOptions | UniformOptions | MinifloatOptions:
    """Turn keywords into the options of the scheme that they name; without one, of learned levels
    where they speak of these, else of ``RECOMMENDED``.

    Raises QuantizeError for choices that the scheme or method does not know.
    """
    off = (None, False)  # 0 is a choice: it is refused where it means nothing
    chosen = {n: choice for n, choice in choices.items() if not any(choice is o for o in off)}
    _rename(chosen, "recipe", "config")
    scheme = str(chosen.pop("scheme", None) or _scheme_for(chosen))
    format = format_named(scheme)
    if isinstance(format, Levels):
        _refuse_others(chosen, FitOptions, f"scheme {scheme!r}")
        chosen = {**level_choices(scheme, format), **chosen}
        return FitOptions(**chosen)  # type: ignore[arg-type]  # the names are fields
    if isinstance(format, Minifloat):
        chosen = {"exponent": format.exponent, "mantissa": format.mantissa, **chosen}
    if isinstance(format, Minifloat) or scheme == MINIFLOAT:
        _refuse_others(chosen, MinifloatOptions, f"scheme {scheme!r}")
        return MinifloatOptions(**chosen)  # type: ignore[arg-type]  # the names are fields
    if scheme != LEARNED:
        _refuse_others(chosen, UniformOptions, f"scheme {scheme!r}")
        return UniformOptions(scheme=scheme, **chosen)  # type: ignore[arg-type]  # fields
    method = chosen.pop("method", FitOptions.method)
    if method not in _METHODS:
        names = " and ".join(map(repr, _METHODS))
        raise OptionsError(f"method is {method!r}: {names} are possible")
    options = _METHODS[str(method)]
    _refuse_others(chosen, options, f"method {method!r}")
    return options(**chosen)  # type: ignore[arg-type]  # the names are fields


def _scheme_for(chosen: Container[str]) -> str:
    """Choose the scheme where none is named."""
    own = {field.name for options in _METHODS.values() for field in fields(options)}
    of_levels = (own | {"method"}) - {"seed"}
    return LEARNED if any(name in chosen for name in of_levels) else RECOMMENDED


def format_named(scheme: str) -> LayerFormat | None:
    """Read a scheme that is a format; None for one that is not."""
    try:
        return scheme_format(scheme)
    except QuantizeError:
        return None


def level_choices(scheme: str, format: Levels) -> dict[str, object]:
    """Write a scheme such as even:w4a4 as options: there are no integers of so few bits between
    operators, but layers read their inputs in them.
    """
    if scheme.startswith("levels:"):
        return {"encode_bits": str(format)}
    return {"encode_bits": str(format), "uniform": True}


def _refuse_others(chosen: Mapping[str, object], options: type, what: str) -> None:
    """Refuse choices that a class of options has no field for."""
    for name in sorted(chosen.keys() - {field.name for field in fields(options)}):
        raise OptionsError(f"{name} does not go with the {what}")


def _rename(chosen: dict[str, object], old: str, new: str) -> None:
    """Move a choice from a name that it had. Raises QuantizeError where both are given."""
    if old in chosen:
        if new in chosen:
            raise OptionsError(f"{old} is the old name of {new}: give one of them")
        chosen[new] = chosen.pop(old)
