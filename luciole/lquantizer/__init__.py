"""Quantize trained models to learned levels, from unlabelled data."""

from luciole.lquantizer.config import Choice, Recipe
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.levels import Settings
from luciole.lquantizer.methods.published import Result, quantize_records
from luciole.lquantizer.network.walk import fit_records
from luciole.lquantizer.report import LayerReport, Report

__all__ = [
    "Choice",
    "LayerReport",
    "QuantizeError",
    "Recipe",
    "Report",
    "Result",
    "Settings",
    "fit_records",
    "quantize_records",
]
