"""Random models in C beside the interpreter: equal, or refused with a reason.

python -m tests.fuzz.in_c --count 2000 --first 0 [--sound]

Half of the models have hostile numbers in their constants: the largest ones, denormals, any bits;
some are given what is no number. Programs are for every target that this machine runs, one after
the other. Where sums may leave the floats the order of additions decides what is left: such models
are compiled and run, but not compared. Learned levels may be off by what their program says.

With --sound those that are equal run once more under gcc's sanitizers of addresses and of undefined
behaviour.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

import luciole
from luciole.compiler import Compiled, Program
from luciole.compiler.host import build_library
from luciole.compiler.self_test import random_records, self_test
from luciole.compiler.targets import NATIVE, PORTABLE, TARGETS, native
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import zero_code
from luciole.kernels.portable.calls import portable_kinds
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler_support import STRICT, interpreted, program_of, run_sound
from tests.fuzz.compiled import alike
from tests.fuzz.models import random_model
from tests.fuzz.networks_in_c import may_overflow, network, spoil, spoil_input
from tests.lq_conv_support import random_conv, with_offsets
from tests.lq_support import random_input

RUNS = 2
"""Of a model: states last from one to the next."""

ENDS = ("equal", "refused", "overflows")
"""How a model may end."""


@cache
def targets() -> list[str]:
    """List what this machine runs: word by word, and vectors as wide as its own or less."""
    words = native().vectors.words if platform.machine() == "x86_64" else 0
    narrow = (n for n, t in TARGETS.items() if n.startswith("x86") and t.vectors.words <= words)
    return [PORTABLE, NATIVE, *narrow]


def checked(seed: int, folder: Path, sound: bool = False) -> str:
    """Make a model, and compare; return one of ``ENDS``, or what is wrong. Under sanitizers too
    where it is to be ``sound``.
    """
    model, target = made(seed), targets()[seed // 16 % len(targets())]
    if len({v.name for v in model.graph.inputs}) < len(model.graph.inputs):
        return "refused"
    try:
        program = program_of(model, target=target)
        runs = [given(program, seed + k) for k in range(RUNS)]
        states = {v: np.full(v.dims, zero_code(v), NUMPY[v.dtype]) for v in variables(model)}
        wanted = [interpreted(model, x, states) for x in runs]
        overflows = is_spoiled(seed) and any(may_overflow(model, x) for x in runs)
    except LucioleError:
        return "refused"
    flags = program.options.machine.library.split()
    build_library(program, folder / f"{seed}.so", [*STRICT, "-fPIC", "-shared", *flags])
    compiled = Compiled(folder / f"{seed}.so")
    within = max((call.fixed.error for call in program.calls if call.fixed), default=0)
    for x, results in zip(runs, wanted, strict=True):
        for found, array in zip(compiled.run(x), results, strict=True):
            result, other = found.astype(array.dtype), array.reshape(found.shape)
            if not (overflows or alike(result, other) or _is_off(result, other, within)):
                return f"seed {seed}, {target}: {[op.kind for op in model.graph.ops]} differ"
    if overflows:
        return "overflows"
    if sound and run_sound(program, folder, self_test(program, compiled, random_records(program))):
        return f"seed {seed}: {[op.kind for op in model.graph.ops]} is unsound"
    return "equal"


def _is_off(found: Array, wanted: Array, within: float) -> bool:
    """Whether floats that are all finite are apart by no more than a bound."""
    is_float = wanted.dtype.kind == "f" and np.isfinite(wanted).all()
    return bool(is_float) and bool((np.abs(found - wanted.astype(np.float64)) <= within).all())


def is_spoiled(seed: int) -> bool:
    """Whether a model's constants are hostile: half of each kind."""
    return seed // 8 % 2 == 1


DRAWS = 6
"""How often a model is drawn where it has no C form: most of these have extents that only a run
tells, operands that are computed, or numbers without a common fixed point.
"""


@lru_cache(1)
def made(seed: int) -> Model:
    """Draw a model until one has a C form, a few times."""
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS - 1):
        model = drawn(rng, seed)
        try:
            program_of(model)
            return model
        except LucioleError:
            pass
    return drawn(rng, seed)


def drawn(rng: np.random.Generator, seed: int) -> Model:
    """Make a model of one operator and perhaps a few behind it; one of eight is a convolution of
    learned levels with constant weights, two are networks, which chance makes too seldom.
    """
    kinds = portable_kinds()
    if seed % 8 == 7:
        model = convolution(rng)
    elif seed % 8 in (2, 5):
        model = network(rng)
    else:
        model = random_model(rng, *kinds[seed % len(kinds)])[0]
    if is_spoiled(seed):
        spoil(rng, model)
    return model


def convolution(rng: np.random.Generator) -> Model:
    """Make a convolution of learned levels."""
    kernel, strides, dilations = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(3))
    sizes = rng.integers(1, 12, 3).tolist()
    channels, outputs, kx, kw = (int(rng.integers(1, most)) for most in (50, 40, 5, 5))
    layer = random_conv(
        *(kernel, channels, outputs, kx, kw),
        padding=Padding.SAME,
        strides=strides,
        dilations=dilations,
        activation=[Act.NONE, Act.RELU, Act.RELU6, Act.TANH][rng.integers(4)],
    )
    layer = with_offsets(layer) if rng.random() < 0.5 else layer
    return layer.model(random_input((*sizes, channels)))


def variables(model: Model) -> list[Value]:
    """List the tensors that last from run to run."""
    return [value for value in model.graph.values if value.is_variable]


def given(program: Program, seed: int) -> dict[str, Array]:
    """Make what one run takes."""
    records = random_records(program, seed)
    if seed % 3 == 0:
        rng = np.random.default_rng(seed)
        for array in records.values():
            spoil_input(rng, array)
    return {
        e.original.name: records[e.original.name][: e.value.dims[0] if e.value.dims else 1].reshape(
            e.value.dims
        )
        for e in program.inputs
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Check models; 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.in_c", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sound", action="store_true", help="run under sanitizers, too")
    options = parser.parse_args(argv)
    seen: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory() as folder:
            found = checked(seed, Path(folder), options.sound)
        seen[found if found in ENDS else "different"] += 1
        kinds[made(seed).graph.ops[0].kind] += found == "equal"
        if found not in ENDS:
            print(found, flush=True)
    print(
        "equal models by their first operator: " + ", ".join(f"{k} {n}" for k, n in kinds.items())
    )
    print(f"luciole {luciole.__version__}: " + ", ".join(f"{n} {k}" for k, n in seen.items()))
    return 1 if seen["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
