"""Quantize trained models to learned levels or uniform integers, from unlabelled data."""

from luciole.lquantizer.config import Choice, Config
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.levels import Settings
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.methods.published import Published
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.network.walk import quantize_records
from luciole.lquantizer.options import FitOptions, PublishedOptions, QuantizeOptions
from luciole.lquantizer.report import LayerReport, Report
from luciole.lquantizer.schemes import UniformOptions
from luciole.lquantizer.uniform.quantize import quantize_uniform

__all__ = [
    "Choice",
    "Config",
    "FitOptions",
    "LayerReport",
    "OutputAware",
    "Published",
    "PublishedOptions",
    "QuantizeError",
    "QuantizeOptions",
    "Report",
    "Result",
    "Settings",
    "UniformOptions",
    "quantize_records",
    "quantize_uniform",
]
