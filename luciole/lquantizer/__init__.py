"""Quantize trained models from unlabelled data: learned levels, uniform integers, minifloats.

What is heavy is imported when one of these is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.lquantizer.assignment.config import Choice, Config
    from luciole.lquantizer.assignment.minifloat_options import MinifloatOptions
    from luciole.lquantizer.assignment.options import FitOptions, PublishedOptions, QuantizeOptions
    from luciole.lquantizer.assignment.schemes import UniformOptions
    from luciole.lquantizer.errors import QuantizeError
    from luciole.lquantizer.formats.levels import Settings
    from luciole.lquantizer.methods.output_aware import OutputAware
    from luciole.lquantizer.methods.published import Published
    from luciole.lquantizer.network.result import Result
    from luciole.lquantizer.report import LayerReport, Report, TensorReport
    from luciole.lquantizer.rewrite.rounded import Rounded
    from luciole.lquantizer.whole.integers import quantize_uniform
    from luciole.lquantizer.whole.levels import quantize_records
    from luciole.lquantizer.whole.minifloat import quantize_minifloat
    from luciole.lquantizer.whole.mixed import quantize_mixed, with_integers
    from luciole.lquantizer.whole.requantize import requantize
    from luciole.lquantizer.whole.simulate import simulate

__all__ = [
    "Choice",
    "Config",
    "FitOptions",
    "LayerReport",
    "MinifloatOptions",
    "OutputAware",
    "Published",
    "PublishedOptions",
    "QuantizeError",
    "QuantizeOptions",
    "Report",
    "Result",
    "Rounded",
    "Settings",
    "TensorReport",
    "UniformOptions",
    "quantize_minifloat",
    "quantize_mixed",
    "quantize_records",
    "quantize_uniform",
    "requantize",
    "simulate",
    "with_integers",
]

_HOME = {
    "Choice": "luciole.lquantizer.assignment.config",
    "Config": "luciole.lquantizer.assignment.config",
    "FitOptions": "luciole.lquantizer.assignment.options",
    "LayerReport": "luciole.lquantizer.report",
    "MinifloatOptions": "luciole.lquantizer.assignment.minifloat_options",
    "OutputAware": "luciole.lquantizer.methods.output_aware",
    "Published": "luciole.lquantizer.methods.published",
    "PublishedOptions": "luciole.lquantizer.assignment.options",
    "QuantizeError": "luciole.lquantizer.errors",
    "QuantizeOptions": "luciole.lquantizer.assignment.options",
    "Report": "luciole.lquantizer.report",
    "Result": "luciole.lquantizer.network.result",
    "Rounded": "luciole.lquantizer.rewrite.rounded",
    "Settings": "luciole.lquantizer.formats.levels",
    "TensorReport": "luciole.lquantizer.report",
    "UniformOptions": "luciole.lquantizer.assignment.schemes",
    "quantize_minifloat": "luciole.lquantizer.whole.minifloat",
    "quantize_mixed": "luciole.lquantizer.whole.mixed",
    "quantize_records": "luciole.lquantizer.whole.levels",
    "quantize_uniform": "luciole.lquantizer.whole.integers",
    "requantize": "luciole.lquantizer.whole.requantize",
    "simulate": "luciole.lquantizer.whole.simulate",
    "with_integers": "luciole.lquantizer.whole.mixed",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
