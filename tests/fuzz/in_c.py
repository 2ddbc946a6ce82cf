"""Random models in C beside the interpreter: equal, or refused with a reason.

python -m tests.fuzz.in_c --count 2000 --first 0
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
from luciole.compiler.self_test import random_records
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import zero_code
from luciole.kernels.portable.calls import portable_kinds
from tests.compiler_support import built, interpreted, program_of
from tests.fuzz.compiled import alike
from tests.fuzz.models import random_model

RUNS = 2
"""Of a model: states last from one to the next."""


def checked(seed: int, folder: Path) -> str:
    """Make a model, and compare; say ``equal``, ``refused``, or what is wrong."""
    rng, kinds = np.random.default_rng(seed), portable_kinds()
    model, _ = random_model(rng, *kinds[seed % len(kinds)])
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
    return "equal"


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
    options = parser.parse_args(argv)
    seen: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory() as folder:
            found = checked(seed, Path(folder))
        seen[found if found in ("equal", "refused") else "different"] += 1
        if found not in ("equal", "refused"):
            print(found, flush=True)
    print(f"luciole {luciole.__version__}: " + ", ".join(f"{n} {k}" for k, n in seen.items()))
    return 1 if seen["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
