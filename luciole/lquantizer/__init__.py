"""Quantize trained models from unlabelled data: learned levels, uniform integers, minifloats."""

from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.assignment.minifloat_options import MinifloatOptions
from luciole.lquantizer.assignment.options import FitOptions, PublishedOptions, QuantizeOptions
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.levels import Settings
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.methods.published import Published
from luciole.lquantizer.minifloat.quantize import quantize_minifloat
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.network.walk import quantize_records
from luciole.lquantizer.report import LayerReport, Report, TensorReport
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.uniform.mixed import quantize_mixed, with_integers
from luciole.lquantizer.uniform.quantize import quantize_uniform
from luciole.lquantizer.uniform.requantize import requantize
from luciole.lquantizer.uniform.simulate import simulate

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
