"""Quantize trained models to learned levels, from unlabelled data."""

from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.fit import fit_records
from luciole.lquantizer.qem import Settings
from luciole.lquantizer.quantize import Result, quantize_records
from luciole.lquantizer.recipe import Choice, Recipe
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
