"""Networks of ``luciole compile --library`` beside the interpreter, on one thread.

  python3 -m benchmarks.compiled [MODEL ...] [--targets native,x86-64-v3] [--rounds N]

Without models: 784-690(tanh)-10(softmax) and 64-320(tanh)-10 with learned levels of 1 to 3 bits,
random weights. Inputs are like images (80 % on one level) and normal numbers; of models whose input
is 784 long, MNIST's, where LUCIOLE_DATA has mnist.npz. "C" is a run called in a loop in C, "bound"
the same from Python (``Compiled.bind``), and the interpreter's ``invoke``: medians, turn by turn in
one process, in microseconds. A ratio is C's time divided by the interpreter's. The last column is
the median time from the start of an executable to its end, one answer between.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

import luciole
from benchmarks.machine import machine
from luciole.compiler import Compiled, CompileOptions, Program, compile_model
from luciole.compiler.host import build_library, run_compiler
from luciole.compiler.targets import find_compiler
from luciole.ir import Array, Model
from luciole.tools.common.timing import interleaved_medians
from luciole.tools.random_models import lq_dense

PACKAGES = ("luciole", "numba", "llvmlite", "numpy")
SIZES = ((784, 690, 10), (64, 320, 10))
BACKGROUND, LOOP, STARTS = 0.8, 20, 41

_REPEAT = """
typedef int run(const void *const *, void *const *);
void repeat(run *once, const void *const *inputs, void *const *outputs, int times);
void repeat(run *once, const void *const *inputs, void *const *outputs, int times)
{
    while (times--) once(inputs, outputs);
}
"""
_MAIN = """
#include "net.h"
int main(void)
{{
    static float x[{inputs}], y[{outputs}];
    return net_run(x, y);
}}
"""


def networks(paths: Sequence[str]) -> Iterator[tuple[str, Model]]:
    """Yield the models that are asked for, or those of the module's description."""
    for path in paths:
        yield Path(path).stem, luciole.load(path)
    for sizes in () if paths else SIZES:
        for bits in (1, 2, 3):
            yield f"{'-'.join(map(str, sizes))} K={bits}", lq_dense(sizes, bits)


def inputs(model: Model) -> dict[str, Array]:
    """Make one record of each kind; MNIST's has as many dark pixels as half of the images."""
    shape, rng = model.graph.inputs[0].dims, np.random.default_rng(1)
    images = Path(os.environ.get("LUCIOLE_DATA", "data")) / "mnist.npz"
    normal = rng.normal(size=shape).astype(np.float32)
    if shape[-1] == 784 and images.exists():
        pixels = np.load(images)["x_test"].reshape(-1, 784)
        dark = (pixels > 0).sum(1)
        pixels = pixels[np.argsort(dark, kind="stable")[len(dark) // 2]].reshape(shape)
        return {"MNIST": ((pixels / 255 - 0.1307) / 0.3081).astype(np.float32), "normal": normal}
    image = np.where(rng.random(shape) < BACKGROUND, np.float32(-9), normal)
    return {"like an image": image, "normal": normal}


def invoke(model: Model, x: Array) -> Callable[[], object]:
    """Return the interpreter's call."""
    interpreter = luciole.Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter.invoke


def in_a_loop(library: Path, shim: Path, x: Array, y: Array) -> Callable[[], object]:
    """Call a library LOOP times in C."""
    repeat, run = ctypes.CDLL(str(shim)).repeat, ctypes.CDLL(str(library)).luciole_run
    given, gotten = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    return lambda: repeat(run, given, gotten, LOOP)


def shim(folder: Path) -> Path:
    """Compile the loop."""
    source, library = folder / "repeat.c", folder / "repeat.so"
    source.write_text(_REPEAT)
    run_compiler([find_compiler(), "-O2", "-fPIC", "-shared", str(source), "-o", str(library)])
    return library


def start_ms(program: Program, folder: Path) -> float:
    """Measure how long an executable takes from start to end."""
    sizes = {"inputs": program.inputs[0].value.dims, "outputs": program.outputs[0].value.dims}
    counts = {name: int(np.prod(dims)) for name, dims in sizes.items()}
    files = {**program.files, "main.c": _MAIN.format(**counts)}
    for name, text in files.items():
        (folder / name).write_text(text)
    made = folder / "once"
    flags = [*program.options.machine.library.split(), "-std=c99"]
    sources = [str(folder / name) for name in ("net.c", "main.c")]
    run_compiler([find_compiler(), *flags, *sources, "-o", str(made)])
    return 1000 * float(np.median([_started(made) for _ in range(STARTS)]))


def _started(program: Path) -> float:
    begun = time.perf_counter()
    pid = os.posix_spawn(program, [str(program)], {})
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return time.perf_counter() - begun


def rows(name: str, model: Model, target: str, rounds: int) -> Iterator[list[str]]:
    """Measure a network: a row for each kind of input."""
    program = compile_model(model, CompileOptions("net", target=target))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        library = folder / "net.so"
        build_library(program, library)
        start, compiled, loop = start_ms(program, folder), Compiled(library), shim(folder)
        for kind, x in inputs(model).items():
            bound, (y, *_) = compiled.bind({model.graph.inputs[0].name: x})
            calls = [invoke(model, x), in_a_loop(library, loop, x, y), bound]
            ours, looped, bound_us = interleaved_medians(calls, rounds)
            c = looped / LOOP
            figures = [f"{us:.2f}" for us in (ours, c, bound_us)]
            yield [name, kind, target, *figures, f"{c / ours:.2f}", f"{start:.2f}"]


HEADINGS = ("network", "input", "target", "invoke", "C", "bound", "ratio", "executable, ms")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.compiled", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--targets", default="native")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args(argv)
    print(f"{' | '.join(HEADINGS)} |\n{'---|' * len(HEADINGS)}")
    for name, model in networks(given.models):
        for target in given.targets.split(","):
            for row in rows(name, model, target, given.rounds):
                print(f"{' | '.join(row)} |", flush=True)
    print(f"\n{machine(PACKAGES)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
