"""luciole: read, quantize, run and look at .circle and .tflite models.

    model = luciole.load("model.circle")
    result = luciole.quantize(model, images, encode_bits=3)
    luciole.save(result.model, "small.circle")
    outputs = luciole.Interpreter("small.circle").run({"input": image})

What is heavy (numba, NumPy's big parts) is imported when one of these is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from luciole.importers.computing import Computing, compute_with

if TYPE_CHECKING:
    from luciole.api import (
        Result,
        compile,  # noqa: A004  # what the program is called
        finetune,
        load,
        quantize,
        requantize,
        save,
        search,
        sensitivity,
        simulate,
    )
    from luciole.compiler import Compiled
    from luciole.exporters import to_bytes
    from luciole.implanting import implant
    from luciole.ir import Graph, LucioleError, Model
    from luciole.judging import Evaluation, diff, evaluate
    from luciole.kernels.core.custom import custom_operator
    from luciole.optimizing import optimize
    from luciole.running import Interpreter, run
    from luciole.surgery import Parts, cut, extract, partition, resize, split
    from luciole.viewing import View, summary, verify, view

__version__ = "1.0.0"

__all__ = [
    "Compiled",
    "Evaluation",
    "Graph",
    "Interpreter",
    "LucioleError",
    "Model",
    "Parts",
    "Result",
    "View",
    "__version__",
    "compile",
    "custom_operator",
    "cut",
    "diff",
    "evaluate",
    "extract",
    "finetune",
    "implant",
    "load",
    "optimize",
    "partition",
    "quantize",
    "requantize",
    "resize",
    "run",
    "save",
    "search",
    "sensitivity",
    "simulate",
    "split",
    "summary",
    "to_bytes",
    "verify",
    "view",
]

_HOME = {
    "Graph": "luciole.ir",
    "LucioleError": "luciole.ir",
    "Model": "luciole.ir",
    "Compiled": "luciole.compiler",
    "Evaluation": "luciole.judging",
    "Interpreter": "luciole.running",
    "View": "luciole.viewing",
    "compile": "luciole.api",
    "Result": "luciole.api",
    "custom_operator": "luciole.kernels.core.custom",
    "load": "luciole.importers",
    "diff": "luciole.judging",
    "evaluate": "luciole.judging",
    "finetune": "luciole.api",
    "implant": "luciole.implanting",
    "optimize": "luciole.optimizing",
    "quantize": "luciole.api",
    "requantize": "luciole.api",
    "run": "luciole.running",
    "simulate": "luciole.api",
    "save": "luciole.exporters",
    "search": "luciole.api",
    "sensitivity": "luciole.api",
    "summary": "luciole.viewing",
    "to_bytes": "luciole.exporters",
    "verify": "luciole.viewing",
    "view": "luciole.viewing",
    "Parts": "luciole.surgery",
    "cut": "luciole.surgery",
    "extract": "luciole.surgery",
    "partition": "luciole.surgery",
    "resize": "luciole.surgery",
    "split": "luciole.surgery",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'luciole' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    importlib.import_module("luciole.ir.shown").show_with(_html_of, _text_of)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _html_of(shown: object) -> str | None:
    """Draw an object for a notebook: what can draw is found by name then, as programs are."""
    html: str | None = importlib.import_module("luciole.drawing.notebook").html_of(shown)
    return html


def _text_of(graph: object) -> str:
    """Write a graph's operators, one a line."""
    text: str = importlib.import_module("luciole.ir.text.ssa").show(graph)
    return text.rstrip("\n")


def _kernels() -> Computing:
    """Import the module that computes operators for readers, which do not know the kernels."""
    kernels: Computing = importlib.import_module("luciole.kernels.core.evaluation")
    return kernels


compute_with(_kernels)
