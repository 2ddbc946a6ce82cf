"""Random models in C beside the interpreter: equal, or refused with a reason.

python -m tests.fuzz.in_c --count 2000 --first 0 [--sound]

With --sound those that are equal run once more under gcc's sanitizers of addresses and of undefined
behaviour.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import luciole
from luciole.compiler import Program
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import zero_code
from luciole.kernels.portable.calls import portable_kinds
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler_support import built, interpreted, program_of, run_sound
from tests.fuzz.compiled import alike
from tests.fuzz.models import random_model
from tests.lq_conv_support import random_conv, with_offsets
from tests.lq_support import random_input

RUNS = 2
"""Of a model: states last from one to the next."""


def checked(seed: int, folder: Path, sound: bool = False) -> str:
    """Make a model, and compare; say ``equal``, ``refused``, or what is wrong. Under sanitizers too
    where it is to be ``sound``.
    """
    model = made(seed)
    if len({v.name for v in model.graph.inputs}) < len(model.graph.inputs):
        return "refused"
    try:
        program = program_of(model)
        runs = [given(program, seed + k) for k in range(RUNS)]
        states = {v: np.full(v.dims, zero_code(v), NUMPY[v.dtype]) for v in variables(model)}
        wanted = [interpreted(model, x, states) for x in runs]
    except LucioleError:
        return "refused"
    compiled = built(program, folder, f"{seed}.so")
    for x, results in zip(runs, wanted, strict=True):
        for found, array in zip(compiled.run(x), results, strict=True):
            if not alike(found.astype(array.dtype), array.reshape(found.shape)):
                return f"seed {seed}: {[op.kind for op in model.graph.ops]} differ"
    if sound and run_sound(program, folder, self_test(program, compiled, random_records(program))):
        return f"seed {seed}: {[op.kind for op in model.graph.ops]} is unsound"
    return "equal"


def made(seed: int) -> Model:
    """Make a model of one operator and perhaps a few behind it; one of eight is a convolution of
    learned levels with constant weights, which chance makes too seldom.
    """
    rng, kinds = np.random.default_rng(seed), portable_kinds()
    if seed % 8 == 7:
        return convolution(rng)
    return random_model(rng, *kinds[seed % len(kinds)])[0]


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
        seen[found if found in ("equal", "refused") else "different"] += 1
        kinds[made(seed).graph.ops[0].kind] += found == "equal"
        if found not in ("equal", "refused"):
            print(found, flush=True)
    print(
        "equal models by their first operator: " + ", ".join(f"{k} {n}" for k, n in kinds.items())
    )
    print(f"luciole {luciole.__version__}: " + ", ".join(f"{n} {k}" for k, n in seen.items()))
    return 1 if seen["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
