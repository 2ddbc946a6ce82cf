"""A test that a program carries with it: records, what came of them here, and ``main``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from luciole.compiler.check import batches
from luciole.compiler.compiled import Compiled
from luciole.compiler.ends import End
from luciole.compiler.options import BYTES, CALLER
from luciole.compiler.program import Program
from luciole.compiler.text import NOT_FINITE, ctype_of, table
from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY

RECORDS = 4
FLOATS_WITHIN = "1e-5f"
"""Of floats the last bits may differ between machines; integers must be equal."""


def random_records(program: Program, seed: int = 0) -> dict[str, Array]:
    """Make records of random numbers, for where there are no others."""
    rng = np.random.default_rng(seed)
    return {end.original.name: _random(rng, end) for end in program.inputs}


def _random(rng: np.random.Generator, end: End) -> Array:
    first = end.value.dims[0] if end.value.dims else 1
    shape = (first * RECORDS, *end.value.dims[1:])
    if end.value.dtype == TensorType.FLOAT32:
        return rng.normal(size=shape).astype(np.float32)
    if end.value.dtype == TensorType.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    limits = np.iinfo(np.uint8 if end.form == BYTES else NUMPY[end.value.dtype])
    return rng.integers(limits.min, limits.max, shape, NUMPY[end.value.dtype], endpoint=True)


def self_test(
    program: Program,
    compiled: Compiled,
    records: Mapping[str, Array],
    *,
    entry: str = "main",
    checked: str | None = None,
) -> str:
    """Write the C text of a test: ``main``, or a function of another name, returns how many numbers
    are not what they were here, at most 100. ``checked``: what a comparison with the interpreter
    gave.
    """
    runs = list(islice(batches(program, records), RECORDS))
    compiled.reset()
    results = [compiled.run(run) for run in runs]
    name = program.options.name
    texts = []
    for k, end in _numbered(program.inputs):
        texts.append(_table(f"given_{k}", end, [run[end.original.name] for run in runs]))
    for k, end in _numbered(program.outputs):
        texts.append(_table(f"wanted_{k}", end, [result[k] for result in results]))
    parts = [
        f"/* {name}_test.c - {entry} returns how many numbers of {len(runs)} records differ from "
        "what\n * this C gave on the computer that wrote it. The interpreter's answers were\n"
        f" * {f'compared: {checked}' if checked else 'not compared: --check DATA does that'}. */",
        f'#include "{name}.h"',
        *(["#include <math.h>"] if any(word in t for t in texts for word in NOT_FINITE) else []),
        *texts,
        *([] if entry == "main" else [f"int {entry}(void);"]),
        "\n".join(_function(program, entry, len(runs))),
    ]
    return "\n\n".join(parts) + "\n"


def _table(name: str, end: End, arrays: Sequence[Array]) -> str:
    return table(name, ctype_of(end.value.dtype), np.stack(arrays))[0]


def _numbered(ends: Sequence[End]) -> list[tuple[int, End]]:
    return list(enumerate(ends))


def _function(program: Program, name: str, runs: int) -> Iterator[str]:
    inputs = [f"given_{k} + record * {_size(e)}" for k, e in _numbered(program.inputs)]
    outputs = [f"found_{k}" for k, _ in _numbered(program.outputs)]
    state = program.state_argument
    arena = ["arena"] if program.options.arena == CALLER else []
    yield f"int {name}(void)"
    yield "{"
    if state:
        yield f"    static struct {program.options.name}_state state;"
    if arena:
        yield f"    static int64_t arena[{program.layout.size // 8 + 1}];"
    for k, end in _numbered(program.outputs):
        yield f"    static {ctype_of(end.value.dtype)} found_{k}[{_size(end)}];"
    yield "    int wrong = 0;"
    if state:
        yield f"    {program.options.name}_reset({state[0]});"
    yield f"    for (int record = 0; record < {runs}; record++) {{"
    arguments = ", ".join([*state, *arena, *inputs, *outputs])
    yield f"        wrong += {program.options.name}_run({arguments});"
    for k, end in _numbered(program.outputs):
        yield from _comparison(k, end)
    yield "    }"
    yield "    return wrong < 100 ? wrong : 100;"
    yield "}"


def _comparison(k: int, end: End) -> Iterator[str]:
    expected = f"wanted_{k}[record * {_size(end)} + i]"
    yield f"        for (int i = 0; i < {_size(end)}; i++) {{"
    if end.value.dtype == TensorType.FLOAT32:
        yield f"            float one = found_{k}[i], other = {expected};"
        yield "            float off = one - other, size = other;"
        yield "            if (off < 0.0f) off = -off;"
        yield "            if (size < 0.0f) size = -size;"
        yield f"            off -= {FLOATS_WITHIN} * (1.0f + size); /* NaN where one is infinite */"
        yield "            int both = one == other || (one != one && other != other);"
        yield "            wrong += !(off <= 0.0f || both);"
    else:
        yield f"            wrong += found_{k}[i] != {expected};"
    yield "        }"


def _size(end: End) -> int:
    return int(np.prod(end.value.dims, dtype=np.int64))
