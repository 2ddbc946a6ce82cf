"""Comparisons between layers of integers."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model, Value
from luciole.ir.ops import comparisons
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.select import SelectV2
from tests.networks import random

LIMIT = 0.25
TESTS: dict[type[comparisons.Comparison], np.ufunc] = {
    comparisons.Less: np.less,
    comparisons.LessEqual: np.less_equal,
    comparisons.Greater: np.greater,
    comparisons.GreaterEqual: np.greater_equal,
}


def chooser(cls: type[comparisons.Comparison]) -> Model:
    """Two layers, of whose results the first one's choose."""
    model = Model()
    graph = model.add_graph(luciole.Graph("main"))
    x = graph.add_input("x", (1, 6))
    made: list[Value] = []
    for seed in (1, 2):
        weights = graph.add_constant(f"weights{seed}", random(seed, 6, 6))
        graph.append(FullyConnected(x, weights, None), f"y{seed}")
        made.append(graph.ops[-1].results[0])
    limit = graph.add_constant("limit", np.array(LIMIT, np.float32))
    graph.append(cls(made[0], limit), "chosen")
    graph.append(SelectV2(graph.ops[-1].results[0], made[0], made[1]), "result")
    graph.outputs = [graph.ops[-1].results[0]]
    return model


def computed(model: Model, x: Array) -> Array:
    interpreter = luciole.Interpreter(model)
    return np.concatenate([*(interpreter.run({"x": one[None]})["result"] for one in x)])


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("cls", TESTS)
def test_what_compares_minds_the_scales_of_both(
    cls: type[comparisons.Comparison], scheme: str
) -> None:
    """The constant's 16-bit step is far finer than the tensor's, and its code is 32767."""
    model, x = chooser(cls), random(3, 40, 6)
    made = luciole.quantize(model, x, scheme=scheme, rounding="nearest", proof=False)
    first, second = (x @ random(seed, 6, 6).T for seed in (1, 2))
    sure = np.abs(first - LIMIT) > 0.4
    wanted = np.where(TESTS[cls](first, LIMIT), first, second)
    error = np.abs(computed(made.model, x) - wanted)[sure]
    assert error.max() < 0.12
    said = [text for text in made.report.floats if text.startswith(cls.code.name)]
    assert bool(said) == (scheme != "int8")
    assert all(text.endswith("its kernel on INT16 minds no scales") for text in said)
