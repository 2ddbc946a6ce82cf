"""``luciole warmup``: compile kernels ahead of time, so that no later run waits for the compiler.

It compiles the kernels that the given models need. Without models it makes up small networks and
compiles theirs: dense layers and convolutions with 1 to 4 learned bits, a dense network in float32,
one of convolutions in float32 and int8, and operators that each take a row of numbers. Kernels of
layers are made for shapes: a model of yours may need a few more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from luciole.schema.errors import LucioleError
from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE, a_model, add_common, parser_for, run_program

if TYPE_CHECKING:
    from luciole.ir import Model

WIDTHS = (1, 2, 3, 4)


def main(argv: Sequence[str] | None = None, program: str = "luciole warmup") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=a_model())
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers import load
    from luciole.kernels import jit
    from luciole.kernels.jit.waiting import always_show

    begun = time.perf_counter()
    cache = jit.kernel_cache()
    if cache.fault:
        raise LucioleError(cache.complaint)
    if not arguments.json:
        always_show()
    before = cache.compiled
    models = [load(path) for path in arguments.models] or list(usual_models())
    compile_all(models, arguments.json)
    kernels, size = cache.contents()
    figures = {
        "folder": str(cache.folder),
        "kernels": kernels,
        "bytes": size,
        "compiled": cache.compiled - before,
        "seconds": time.perf_counter() - begun,
        "models": len(models),
    }
    _print(figures, arguments.json)
    return FAILED if cache.fault else FINE  # a disk that is full by now: that was said


def _print(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        console.print_json(figures)
        return
    size = console.size_text(figures["bytes"])
    console.show(f"compiled  {figures['compiled']} kernels in {figures['seconds']:.1f} s")
    console.show(f"cache     {figures['kernels']} kernels, {size}, in {figures['folder']}")


def compile_all(models: Sequence[Model], quiet: bool) -> None:
    """Compile the kernels of models, and draw a bar unless it is ``quiet``."""
    with console.tracked(quiet) as track:
        advance = track("compiling", len(models))
        for model in models:
            compile_kernels(model)
            advance(1)


def compile_kernels(model: Model) -> None:
    """Compile, or find in the cache, everything that a model's runs and profiles need."""
    from luciole.interpreter import Interpreter

    interpreter = Interpreter(model)
    interpreter.allocate_tensors()


def usual_models() -> Iterator[Model]:
    """Make small models that together need the kernels of common networks."""
    from luciole.kernels.core import registry
    from luciole.tools import random_models

    for bits in WIDTHS:
        yield random_models.lq_dense((784, 690, 10), bits)
        yield random_models.lq_dense((96, 64), bits, rows=8)
        yield from (random_models.lq_convolution(8, n, bits) for n in (16, 64))
    yield random_models.dense((784, 690, 10))
    yield random_models.convolutions()
    yield random_models.in_int8(random_models.convolutions())
    for kind, cls, dtypes in registry.registered():
        model = random_models.alone(cls, dtypes) if kind == "native" else None
        if model is not None:
            yield model
