"""Random models in C beside the interpreter: equal, or refused with a reason.

python -m tests.fuzz.in_c --count 5000 --first 0 --modes plain sound m32 c++

Half of the models have hostile numbers in their constants: the largest ones, denormals, any bits;
some are given what is no number; one of sixteen was quantized by a scheme. Programs are for every
target that this machine runs, one batch after the other. Where sums may leave the floats the order
of additions decides what is left: such models are compiled and run, but not compared. Learned
levels may be off by what their program says.

The modes are those of ``tests.fuzz.batches_in_c``: each model is built and run in every one.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np

import luciole
from luciole.compiler import Program
from luciole.compiler.options import CALLER, STATIC
from luciole.compiler.self_test import random_records
from luciole.compiler.targets import NATIVE, PORTABLE, TARGETS, native
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import zero_code
from luciole.kernels.portable.calls import portable_kinds
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler_support import interpreted, program_of
from tests.fuzz.batches_in_c import MODES, Case, run_batch
from tests.fuzz.compiled import alike
from tests.fuzz.models import random_model
from tests.fuzz.networks_in_c import may_overflow, network, quantized_network, spoil, spoil_input
from tests.lq_conv_support import random_conv, with_offsets
from tests.lq_support import random_input

RUNS = 2
"""Of a model: states last from one to the next."""

BATCH = 16
"""Numbers of models that one call of a compiler makes, for one target."""

ENDS = ("equal", "refused", "overflows")
"""How a model may end."""


@cache
def targets() -> list[str]:
    """List what this machine runs: word by word, and vectors as wide as its own or less."""
    words = native().vectors.words if platform.machine() == "x86_64" else 0
    narrow = (n for n, t in TARGETS.items() if n.startswith("x86") and t.vectors.words <= words)
    return [PORTABLE, NATIVE, *narrow]


def target_of(seed: int) -> str:
    """Choose the target of a model: the same for all of a batch."""
    return targets()[seed // BATCH % len(targets())]


def checked(seed: int, folder: Path, mode: str = "plain") -> str:
    """Make a model and compare; return one of ``ENDS``, or what is wrong."""
    return check([seed], folder, [mode])[seed]


def check(seeds: Sequence[int], folder: Path, modes: Sequence[str]) -> dict[int, str]:
    """Make a batch of models and compare them in all modes: for each number one of ``ENDS``, or
    what is wrong.
    """
    said = dict.fromkeys(seeds, "refused")
    cases = [case for seed in seeds if (case := case_of(seed)) is not None]
    said |= {case.seed: "overflows" if case.overflows else "equal" for case in cases}
    for name in modes:
        whole = [case for case in cases if said[case.seed] in ENDS]
        for case, written in run_batch(whole, MODES[name], _tuning(seeds[0]), folder):
            if isinstance(written, str) or not _is_right(case, written):
                why = written if isinstance(written, str) else "the results differ"
                kinds = [call.function for call in case.program.calls]
                said[case.seed] = (
                    f"seed {case.seed}, {name}, {target_of(case.seed)}: {kinds}: {why}"
                )
    return said


def _tuning(seed: int) -> list[str]:
    """Return a target's flags; two of three batches are optimized less, in half the time."""
    flags = (native() if target_of(seed) == NATIVE else TARGETS[target_of(seed)]).library.split()
    return flags if seed // BATCH % 3 == 0 else [*flags, "-O1"]


def case_of(seed: int) -> Case | None:
    """Make a model, its program, and what the interpreter makes of it; None where it is refused."""
    model = made(seed)
    if len({v.name for v in model.graph.inputs}) < len(model.graph.inputs):
        return None
    try:
        arena = CALLER if seed % 3 == 1 else STATIC
        program = program_of(model, target=target_of(seed), arena=arena, name=f"net{seed}")
        runs = [given(program, seed + k) for k in range(RUNS)]
        states = {v: np.full(v.dims, zero_code(v), NUMPY[v.dtype]) for v in variables(model)}
        wanted = [interpreted(model, x, states) for x in runs]
        overflows = is_spoiled(seed) and any(may_overflow(model, x) for x in runs)
    except LucioleError:
        return None
    return Case(seed, program, runs, wanted, overflows)


def _is_right(case: Case, written: bytes) -> bool:
    """Whether results are those of the interpreter, as far as anything can be said of them."""
    within = max((call.fixed.error for call in case.program.calls if call.fixed), default=0)
    return case.overflows or all(
        alike(result, other) or _is_off(result, other, within)
        for results, wanted in zip(case.results(written), case.wanted, strict=True)
        for result, other in _pairs(results, wanted)
    )


def _pairs(results: Sequence[Array], wanted: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    for found, array in zip(results, wanted, strict=True):
        yield found.astype(array.dtype), array.reshape(found.shape)


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


@lru_cache(BATCH)
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
    learned levels with constant weights, two are networks, which chance makes too seldom; one of
    sixteen was quantized.
    """
    kinds = portable_kinds()
    if seed % 16 == 3:
        return quantized_network(rng, seed)
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


def _cpu_seconds() -> float:
    """Return what this process and those that it started have computed for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main(argv: Sequence[str] | None = None) -> int:
    """Check models; 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.in_c", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["plain"])
    options = parser.parse_args(argv)
    modes = [name for name in options.modes if not MODES[name].refusal]
    for name in sorted({*options.modes} - {*modes}):
        print(f"mode {name} is left out: {MODES[name].refusal}", flush=True)
    seen, kinds, begun = Counter[str](), Counter[str](), _cpu_seconds()
    seeds = range(options.first, options.first + options.count)
    for _, batch in groupby(seeds, lambda seed: seed // BATCH):
        with tempfile.TemporaryDirectory() as folder:
            for seed, found in check(list(batch), Path(folder), modes).items():
                seen[found if found in ENDS else "different"] += 1
                kinds[made(seed).graph.ops[0].kind] += found == "equal"
                if found not in ENDS:
                    print(found, flush=True)
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    print(f"equal models by their first operator: {listed}")
    ends = ", ".join(f"{count} {end}" for end, count in seen.items())
    rate = 60 * options.count / (_cpu_seconds() - begun)
    words = f"{rate:.0f} in a minute of one core ({' '.join(modes)})"
    print(f"luciole {luciole.__version__}: {ends}; {words}")
    return 1 if seen["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
