"""Turn keywords into options, configurations of other tools included."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from luciole.files.json_reading import read_json
from luciole.lquantizer.assignment.aeq import AeqRecipe
from luciole.lquantizer.assignment.minifloat_options import MinifloatOptions
from luciole.lquantizer.assignment.one_config import OneOptions
from luciole.lquantizer.assignment.options import QuantizeOptions, options_of
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.errors import QuantizeError

WholeOptions = UniformOptions | OneOptions
"""Options for whole networks: all but those of learned levels and minifloats."""
Options = QuantizeOptions | UniformOptions | MinifloatOptions | OneOptions


def options_for(choices: Mapping[str, object]) -> Options:
    """Turn keywords into options: those of ONE's numbers where ``compatible`` or the configuration
    asks for them, else of the scheme or method that they name.

    Raises QuantizeError for choices that do not go together.
    """
    chosen: dict[str, Any] = {n: choice for n, choice in choices.items() if choice is not None}
    content = config_content(chosen.get("config", chosen.get("recipe")))
    compatible = chosen.pop("compatible", None)
    if compatible not in (None, OneOptions.compatible):
        raise QuantizeError(f"compatible is {compatible!r}: 'one' is possible")
    if compatible is not None or is_of_one(content):
        return _of_one(chosen, content)
    if is_of_aeq(content):
        return _of_aeq(chosen, content)
    return options_of(choices)


def is_of_aeq(content: object) -> bool:
    """Check whether a configuration has the shape of AI Edge Quantizer's: a list, of rules."""
    return isinstance(content, list)


def _of_aeq(chosen: dict[str, Any], content: object) -> UniformOptions:
    """Return the options of a recipe; choices beside it come first."""
    recipe = AeqRecipe.parse(content)
    own = {name: it for name, it in chosen.items() if name not in ("config", "recipe")}
    for name in ("scheme", "granularity"):
        if name in own:
            raise QuantizeError(f"{name} does not go with a recipe, which says it")
    options = options_of({**recipe.defaults, **own})
    assert isinstance(options, UniformOptions), "a recipe's scheme is a uniform one"
    own_ends = frozenset(name for name in ("input_type", "output_type") if name in own)
    return replace(options, per_operator=replace(recipe, own_ends=own_ends))


def options_for_network(choices: Mapping[str, Any]) -> WholeOptions:
    """Turn arguments of a command into options for whole networks."""
    options = options_for(choices)
    if isinstance(options, QuantizeOptions | MinifloatOptions):
        raise QuantizeError("the scheme is for another program than uniform integers")
    return options


def is_foreign_file(path: str) -> bool:
    """Check whether a file holds a configuration of another tool; an unreadable one does not."""
    try:
        content = config_content(path)
    except QuantizeError:
        return False
    return is_of_one(content) or is_of_aeq(content)


def _of_one(chosen: dict[str, Any], content: object) -> OneOptions:
    own = {name: it for name, it in chosen.items() if name not in ("config", "recipe")}
    others = own.keys() - {field.name for field in fields(OneOptions)}
    if others:
        raise QuantizeError(f"{min(others)} does not go with ONE's numbers")
    named = content.get("default_quantization_dtype") if isinstance(content, Mapping) else None
    own.setdefault("scheme", named or "uint8")
    return OneOptions(config=content, **own)


def config_content(source: object) -> object:
    """Read a configuration: a file, or what it holds already. Raises QuantizeError for a file that
    cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        return source
    return read_json(source, QuantizeError, "config")


def is_of_one(content: object) -> bool:
    """Check whether a configuration has the shape of ONE's: it has a default element type, or a
    layer has one.
    """
    if not isinstance(content, Mapping):
        return False
    layers = content.get("layers")
    entries = layers if isinstance(layers, list) else []
    typed = any(isinstance(entry, Mapping) and "dtype" in entry for entry in entries)
    return typed or "default_quantization_dtype" in content
