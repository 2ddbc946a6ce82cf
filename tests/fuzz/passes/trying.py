"""Try a pass on a random graph around what it looks for: the same numbers, names and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import luciole
from luciole.ir import Array, LucioleError, Model
from luciole.ir.findings import refusal
from luciole.ir.passes.registry import all_passes, chosen, run_on_model
from luciole.ir.verify import verify
from luciole.kernels.core.evaluation import evaluate
from tests.fuzz.passes import composites
from tests.fuzz.passes.building import Builder
from tests.fuzz.passes.patterns import PATTERNS

FLOATS_APART = 1e-5
"""Of the range of an output."""
_ROUNDING = 2.0**-21
"""What is no difference: graphs have numbers around 1, of which outputs may be a narrow part."""
_ATTEMPTS, _FAR = 3, 100_003
_QUANTIZED = 0.3
"""Share of graphs that become integers first."""
LOSSY = frozenset(("remove_fakequant", "remove_quantdequant"))
"""Passes that drop a rounding: numbers are to be others, to that rounding."""
LOST = 1e-3
TURNED = frozenset(("nchw_to_nhwc_input_shape", "nchw_to_nhwc_output_shape", "put_channels_last"))
"""Passes that turn what the caller gives or gets."""


@dataclass
class Result:
    """What was seen: passes that changed something, by name, and what is wrong."""

    fired: Counter[str] = field(default_factory=Counter)
    graphs: int = 0
    quantized: int = 0
    wrong: list[str] = field(default_factory=list)


def names() -> list[str]:
    """List the passes that have patterns."""
    assert composites.__name__, "its patterns are registered"
    return [name for name in all_passes() if name in PATTERNS]


def try_passes(seeds: range) -> Result:
    """Try one graph for each seed, with the passes in turn."""
    result, order = Result(), names()
    for seed in seeds:
        name = order[seed % len(order)]
        try:
            _try_until_changed(result, name, seed)
        except Exception as error:  # whatever a pass raises is a finding
            result.wrong.append(f"{name} on graph {seed}: {type(error).__name__}: {error}")
    return result


def graph(name: str, seed: int) -> tuple[Model, bool]:
    """Build a graph around what a pass looks for, and tell whether it is of integers."""
    b = Builder(seed)
    model = b.finish(b.around(PATTERNS[name][seed % len(PATTERNS[name])](b)))
    if not b.chance(_QUANTIZED):
        return model, False
    quantized = _quantized(model, b)
    return (model, False) if quantized is None else (quantized, True)


def _quantized(model: Model, b: Builder) -> Model | None:
    data = {v.name: _numbers(b, (8, *v.dims)[1:], 8) for v in model.graph.inputs}
    if any(v.dims[:1] != (1,) for v in model.graph.inputs):
        return None
    try:
        made = luciole.quantize(
            model, data, scheme="int8", rounding="nearest", rescale="none", proof=False
        )
    except LucioleError:
        return None
    return made.model


def _numbers(b: Builder, shape: Sequence[int], count: int) -> Array:
    return b.random.normal(0, 1, (count, *shape[1:])).astype(np.float32)


def _try_until_changed(result: Result, name: str, seed: int) -> None:
    """Try some graphs until the pass changes one: many are only almost what it looks for."""
    before = result.fired[name]
    for attempt in range(_ATTEMPTS):
        _try(result, name, seed + attempt * _FAR)
        if result.fired[name] > before:
            return


def _try(result: Result, name: str, seed: int) -> None:
    model, is_integer = graph(name, seed)
    result.graphs += 1
    result.quantized += is_integer
    after = model.clone()
    several = seed % 7 == 3 and name not in LOSSY | TURNED
    passes = chosen(circle=True) if several else chosen(passes=[name])
    changes = run_on_model(after, passes, evaluate)
    result.fired.update(changes.keys())
    fault = _fault(model, after, name, seed)
    if fault is not None:
        what = f"{name}{' and the preset' if several else ''} on graph {seed}"
        result.wrong.append(f"{what}{' of integers' if is_integer else ''}: {fault}")


def _fault(model: Model, after: Model, name: str, seed: int) -> str | None:
    """Say what is wrong with a graph behind a pass, None where nothing is."""
    refused = refusal(verify(after))
    if refused is not None:
        return refused
    for side in ("inputs", "outputs"):
        before, behind = ([v.name for v in getattr(m.graph, side)] for m in (model, after))
        if before != behind:
            return f"{side} {before} are called {behind}"
    random = np.random.default_rng(seed)
    feeds = {v.name: _feed(v, random) for v in model.graph.inputs}
    first = luciole.Interpreter(model).run(feeds)
    turned = {v.name: _as_wanted(feeds[v.name], v.dims) for v in after.graph.inputs}
    second = luciole.Interpreter(after).run(turned)
    bounds = LOST if name in LOSSY else FLOATS_APART
    for output, one in first.items():
        other = _as_wanted(second[output], one.shape)
        apart = _apart(one, other)
        if apart > (0 if one.dtype.kind in "iu" else bounds):
            return f"output {output!r} is {apart:.2e} of its range off"
    return None


def _feed(value: luciole.ir.Value, random: np.random.Generator) -> Array:
    numbers = random.normal(0, 1, value.dims)
    if value.dtype.name == "FLOAT32":
        return numbers.astype(np.float32)
    return np.clip(numbers * 50, -128, 127).astype(np.int8)


def _as_wanted(array: Array, shape: Sequence[int]) -> Array:
    """Turn images to or from channels last where their shape says so."""
    if array.shape == tuple(shape):
        return array
    orders = ((0, 2, 3, 1), (0, 3, 1, 2))
    return next(t for order in orders if (t := array.transpose(order)).shape == tuple(shape))


def _apart(one: Array, other: Array) -> float:
    if one.dtype != other.dtype or one.shape != other.shape:
        return float("inf")
    wide = one.astype(np.float64)
    unlike = np.isnan(wide) != np.isnan(other)
    if unlike.any():
        return float("inf")
    with np.errstate(invalid="ignore"):
        away = np.nan_to_num(np.abs(wide - other), posinf=np.inf)
    if not wide.size:
        return 0.0
    if away.max() <= _ROUNDING:
        return 0.0
    return float(away.max() / (np.ptp(np.nan_to_num(wide)) or 1))
