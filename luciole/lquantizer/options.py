"""What can be chosen for a quantization: one class for each method, and what goes together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

from luciole.lquantizer.config import Choice, Config
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.levels import Settings
from luciole.lquantizer.schemes import Granularity, Rescale, Rounding, UniformOptions

LEARNED = "learned"
"""The scheme that is not a uniform one."""

MethodName = Literal["fit", "published"]
Source = str | os.PathLike[str] | Mapping[str, Any]
"""Settings for single layers: a JSON file or its content."""


class Choices(TypedDict, total=False):
    """Everything that ``luciole.quantize`` takes by keyword; each method and each scheme takes a
    part of it.
    """

    scheme: str
    granularity: Granularity
    ranges: str
    rounding: Rounding
    rescale: Rescale
    input_type: str
    output_type: str
    method: MethodName
    encode_bits: int
    input_bits: int | None
    weight_bits: int | None
    config: Source | None
    recipe: Source | None  # what config was called
    settings: Settings | None
    seed: int
    all_layers: bool
    weights_only: bool
    unroll_lstms: bool
    target_size: int | None
    target_drop: float | None


@dataclass(frozen=True)
class QuantizeOptions:
    """What every method takes.

    ``encode_bits`` is the width of inputs and weights unless ``input_bits`` or ``weight_bits`` say
    otherwise; ``config`` (a JSON file or its content) chooses layer by layer. ``all_layers``
    quantizes the ends of convolutional networks too.
    """

    method: ClassVar[str] = ""
    encode_bits: int = 3
    input_bits: int | None = None
    weight_bits: int | None = None
    config: Source | None = None
    seed: int = 0
    all_layers: bool = False

    @property
    def default(self) -> Choice:
        """The choice for every layer that nothing else speaks of."""
        return Choice(
            self.encode_bits if self.input_bits is None else self.input_bits,
            self.encode_bits if self.weight_bits is None else self.weight_bits,
        )

    def per_layer(self) -> Config:
        """Make the config: the choice for every layer. Raises QuantizeError that says what was not
        understood.
        """
        found = self._configured()
        found.all_layers |= self.all_layers
        return found

    def _configured(self) -> Config:
        if self.config is None:
            return Config(self.default)
        if isinstance(self.config, Mapping):
            return Config.parse(dict(self.config), self.default)
        return Config.read(Path(self.config), self.default)


@dataclass(frozen=True)
class PublishedOptions(QuantizeOptions):
    """The baseline, for dense layers; ``settings`` say how bases are fitted."""

    method: ClassVar[str] = "published"
    settings: Settings | None = None


@dataclass(frozen=True)
class FitOptions(QuantizeOptions):
    """The fit that keeps each layer's output close.

    ``weights_only`` keeps layers' inputs float and writes ONE's BCQ_FULLY_CONNECTED;
    ``unroll_lstms`` turns LSTMs into dense layers first, whose state starts at zero in each run.
    With ``target_size`` (bytes) or ``target_drop`` (points of a classifier's answers that may
    change) each layer gets as many bits as pay.
    """

    method: ClassVar[str] = "fit"
    weights_only: bool = False
    unroll_lstms: bool = False
    target_size: int | None = None
    target_drop: float | None = None

    def __post_init__(self) -> None:
        """Refuse a target beside widths, and two targets."""
        given = [name for name in ("target_drop", "target_size") if getattr(self, name) is not None]
        widths = ("input_bits", "weight_bits", "weights_only")
        given += [name for name in widths if given and getattr(self, name)]
        if len(given) > 1:
            raise QuantizeError(f"{given[0]} does not go with {given[1]}")

    @property
    def default(self) -> Choice:
        """The choice for every layer that nothing else speaks of."""
        widths = super().default
        return Choice(widths.input_bits, widths.weight_bits, weights_only=self.weights_only)


_METHODS: dict[str, type[QuantizeOptions]] = {c.method: c for c in (FitOptions, PublishedOptions)}


def options_of(choices: Choices) -> QuantizeOptions | UniformOptions:
    """Turn keywords into the options of the scheme that they name, or else of the method ("fit"
    unless they do).

    Raises QuantizeError for choices that the method does not know, TypeError for names that no
    method knows.
    """
    off = (None, False)  # 0 is a choice: it is refused where it means nothing
    given = {n: choice for n, choice in choices.items() if not any(choice is o for o in off)}
    _rename(given, "recipe", "config")
    scheme = given.pop("scheme", LEARNED)
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
