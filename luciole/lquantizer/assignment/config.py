"""Say which layers get how many bits: defaults, and per-layer exceptions from a JSON file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from pathlib import Path
from typing import Any

from luciole.files.json_reading import read_json
from luciole.ir.errors import expect
from luciole.ir.names import meant, short_names
from luciole.lquantizer.assignment.layer_format import Levels, levels_format, parse
from luciole.lquantizer.assignment.schemes import (
    FLOAT,
    LEARNED,
    UNIFORM,
    Chosen,
    Source,
    chosen_format,
    is_for_operators,
)
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.reading import compiled, refuse_others

_WHICH = {"name", "names", "pattern", "regex", "operator"}
_WHAT = {"input_bits", "weight_bits", "encode_bits", "skip", "weights_only", "scheme", "uniform"}
_FOR_ALL = _WHAT - {"skip"} | {"layers", "all_layers"}
_TYPES: dict[str, type] = {
    "input_bits": int,
    "weight_bits": int,
    "skip": bool,
    "weights_only": bool,
    "scheme": str,
    "uniform": bool,
}


@dataclass(frozen=True)
class Choice:
    """The format of one layer, or none (``skip``)."""

    input_bits: int = 3
    weight_bits: int = 3
    skip: bool = False
    weights_only: bool = False
    """Keep the layer's inputs float."""
    scheme: str | None = None
    """"learned", or the name of a uniform format or float; None: that of the whole network."""
    uniform: bool = False
    """Whether learned levels are evenly spaced."""

    def __post_init__(self) -> None:
        """Refuse a scheme and bits that there are not."""
        Levels(self.weight_bits, self.input_bits)
        if self.scheme not in (None, LEARNED) and not is_for_operators(self.scheme):
            known = ", ".join((*UNIFORM, LEARNED, str(FLOAT)))
            raise QuantizeError(f"config: scheme is {self.scheme!r}: {known} are possible")

    @property
    def levels(self) -> Levels:
        """The learned levels that the layer gets, if it gets some."""
        return Levels(
            self.weight_bits, None if self.weights_only else self.input_bits, self.uniform
        )

    @property
    def own_scheme(self) -> str | None:
        """The scheme, be it that the layer stays as it is; None: that of the whole network."""
        if self.skip:
            return str(FLOAT)
        return None if self.scheme == str(FLOAT) else self.scheme

    def format(self, whole: str) -> Chosen:
        """Return the layer's format under a scheme of the ``whole`` network."""
        scheme = self.own_scheme or whole
        return self.levels if scheme == LEARNED else chosen_format(scheme)


def _fields(levels: Levels) -> dict[str, Any]:
    """Write levels as fields of a ``Choice``."""
    widths = {"weight_bits": levels.weights, "weights_only": levels.inputs is None}
    inputs = {} if levels.inputs is None else {"input_bits": levels.inputs}
    return {**widths, **inputs, "uniform": levels.even}


@dataclass(frozen=True)
class Rule:
    """An exception for the layers whose name, whole or short, a regular expression matches, or for
    all of one ``operator``.
    """

    pattern: re.Pattern[str]
    change: Mapping[str, Any]
    names: tuple[str, ...] = ()
    """The layers' names that the pattern was made of."""
    operator: str | None = None
    """Circle's name of an operator, such as CONV_2D."""

    def among(self, layers: Sequence[str], others: Sequence[str] = ()) -> Rule:
        """Replace the names by those of layers, or where they mean none, of other operators: a part
        of a name will do where only one has it.

        Raises QuantizeError where several have it.
        """
        if not self.names:
            return self
        layer_names = [
            _one_meant(text, layers if meant(text, layers) else others) for text in self.names
        ]
        return replace(self, pattern=_any_of(layer_names), names=tuple(layer_names))


class Config:
    """The choice for every layer: the default, changed by each rule that matches, the last one
    winning. Among a network's layers (``among``) rules may use short names.
    """

    def __init__(
        self,
        default: Choice | None = None,
        rules: tuple[Rule, ...] = (),
        all_layers: bool = False,
    ) -> None:
        self.default = default or Choice()
        self.rules = rules
        self.all_layers = all_layers
        """Whether layers are quantized too that are spared unless a rule speaks of them."""
        self.exact: dict[str, Choice] = {}
        self.short: Mapping[str, str] = {}
        self.kinds: Mapping[str, str] = {}
        """What operators are, by name."""

    @property
    def schemes(self) -> set[str]:
        """Every scheme that it speaks of."""
        changes = [self.default.scheme, *(rule.change.get("scheme") for rule in self.rules)]
        return {scheme for scheme in changes if scheme is not None}

    def among(self, layers: Sequence[str], kinds: Mapping[str, str] | None = None) -> Config:
        """Copy the config for a network with these layers; ``kinds`` says what each operator of the
        network is, layer or not, by its name. Raises QuantizeError for a part of a name that
        several have.
        """
        kinds = kinds or {}
        others = [name for name in kinds if name not in set(layers)]
        rules = tuple(rule.among(layers, others) for rule in self.rules)
        copy = Config(self.default, rules, self.all_layers)
        copy.exact, copy.kinds = self.exact, kinds
        copy.short = {**short_names(others), **short_names(layers)}
        return copy

    def _matches(self, rule: Rule, layer: str) -> bool:
        if rule.operator is not None:
            return self.kinds.get(layer) == rule.operator
        short = self.short.get(layer, layer)
        return bool(rule.pattern.fullmatch(layer) or rule.pattern.fullmatch(short))

    def choose(self, layer: str) -> Choice:
        """Return the choice for a layer, by the name of its result."""
        if layer in self.exact:
            return self.exact[layer]
        choice = self.default
        for rule in self.rules:
            if self._matches(rule, layer):
                choice = replace(choice, **rule.change)
        return choice

    def with_choices(self, choices: Mapping[str, Choice]) -> Config:
        """Copy the config, with whole choices for some layers by name."""
        copy = Config(self.default, self.rules, self.all_layers)
        copy.exact, copy.short, copy.kinds = {**self.exact, **choices}, self.short, self.kinds
        return copy

    def only_of(self, names: Sequence[str]) -> Config:
        """Copy the config without the rules that speak of none of some operators."""
        rules = tuple(r for r in self.rules if any(self._matches(r, name) for name in names))
        copy = Config(self.default, rules, self.all_layers).with_choices(self.exact)
        copy.short, copy.kinds = self.short, self.kinds
        return copy

    def names(self, layer: str) -> bool:
        """Check whether a rule names a layer, so that it is not spared where others are."""
        return any(self._matches(rule, layer) for rule in self.rules)

    def unused(self, layers: Sequence[str]) -> list[str]:
        """List the rules that match no layer: most likely a misspelt name."""
        idle = [r for r in self.rules if not any(self._matches(r, n) for n in layers)]
        return [r.operator or ", ".join(r.names) or r.pattern.pattern for r in idle]

    @classmethod
    def of(cls, source: Source | None, default: Choice) -> Config:
        """Read a config from a file or its content; without one every layer has the default.

        Raises QuantizeError that says what was not understood.
        """
        if source is None:
            return cls(default)
        if isinstance(source, Mapping):
            return cls.parse(dict(source), default)
        expect(source, (str, os.PathLike), "config: a file's path or its content")
        return cls.read(Path(source), default)

    @classmethod
    def read(cls, path: Path, default: Choice) -> Config:
        """Read a config file. Raises QuantizeError that says what was not understood."""
        return cls.parse(read_json(path, QuantizeError, "config"), default)

    @classmethod
    def parse(cls, content: Any, default: Choice) -> Config:
        """Read a config's content: ``{"encode_bits": 3, "layers": [{"name": "fc1", "input_bits":
        8}, {"pattern": "*", "skip": true}]}``.

        A layer is named by ``name``, ``names``, a shell ``pattern`` or a ``regex``; ``operator``
        names all of a kind. ``scheme`` is "learned", the name of a uniform scheme, "float", or the
        word of a format such as "levels:w2a4".
        """
        if not isinstance(content, dict) or not isinstance(content.get("layers", []), list):
            raise QuantizeError('a config is an object with a list "layers"')
        unknown = content.keys() - _FOR_ALL
        if unknown:
            raise QuantizeError(f"config: {', '.join(sorted(unknown))} is not understood")
        every = content.get("all_layers", False)
        if type(every) is not bool:
            raise QuantizeError(f"config: all_layers is {every!r}, bool is needed")
        base = replace(default, **_bits({k: v for k, v in content.items() if k in _WHAT}))
        return cls(base, tuple(_rule(entry) for entry in content.get("layers", [])), every)


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, dict):
        raise QuantizeError(f"config: a layer is an object, found {entry!r}")
    refuse_others("config", entry, _WHICH | _WHAT)
    change = _bits({k: v for k, v in entry.items() if k in _WHAT})
    which, texts = _which(entry)
    if which == "operator":
        return Rule(_any_of(texts), change, operator=texts[0].upper())
    if which in ("name", "names"):
        return Rule(_any_of(texts), change, tuple(texts))
    expression = translate(texts[0]) if which == "pattern" else texts[0]
    return Rule(compiled(f"config: {which}", texts[0], expression), change)


def _which(entry: dict[str, Any]) -> tuple[str, list[str]]:
    """Read the key that selects an entry's layers, and its texts."""
    keys = sorted(_WHICH & entry.keys())
    if len(keys) != 1:
        raise QuantizeError(
            "config: a layer needs one of name, names, pattern, regex, operator; "
            f"found {keys or 'none'}"
        )
    value = entry[keys[0]]
    texts = value if keys[0] == "names" and isinstance(value, list) else [value]
    if not all(isinstance(t, str) for t in texts):
        raise QuantizeError(f"config: {keys[0]} is {value!r}, text is needed")
    return keys[0], texts


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, names)))


def _one_meant(text: str, layers: Sequence[str]) -> str:
    matches = list(dict.fromkeys(meant(text, layers)))
    if len(matches) > 1:
        short = short_names(layers)
        listed = ", ".join(short[name] for name in matches)
        raise QuantizeError(f"config: {text!r} is a part of several layers' names: {listed}")
    return matches[0] if matches else text


def _bits(entry: dict[str, Any]) -> dict[str, Any]:
    """Read widths from ``encode_bits`` or a scheme of learned levels, each from its own key, and
    check them.
    """
    levels = _learned(entry.get("scheme"))
    change: dict[str, Any] = {} if levels is None else _fields(levels)
    if "encode_bits" in entry:
        change |= _widths(entry["encode_bits"])
    change.update({k: entry[k] for k in _TYPES if k in entry})
    if levels is not None:
        change["scheme"] = LEARNED
    for key, value in change.items():
        if type(value) is not _TYPES[key]:
            raise QuantizeError(f"config: {key} is {value!r}, {_TYPES[key].__name__} is needed")
    if "scheme" in change:
        change.setdefault("skip", change["scheme"] == str(FLOAT))
    Choice(**change)
    return change


def _widths(bits: Any) -> dict[str, Any]:
    """Read ``encode_bits``: a number or pair says widths, a word such as even:w2a4 all."""
    if not isinstance(bits, str):
        return {"weight_bits": bits, "input_bits": bits}
    levels = levels_format(bits)
    if bits == str(levels):
        return _fields(levels)
    return {"weight_bits": levels.weights, "input_bits": levels.inputs}


def _learned(scheme: object) -> Levels | None:
    """Read a scheme that is the word of learned levels, None for every other one."""
    if not isinstance(scheme, str) or ":" not in scheme:
        return None
    format = parse(scheme)
    return format if isinstance(format, Levels) else None
