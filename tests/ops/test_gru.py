"""GRU against plain loops: LiteRT has no such operator."""

from __future__ import annotations

from math import exp, tanh
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, LucioleError, ShapeError
from luciole.ir.ops.gru import GRU
from luciole.schema.enums import ActivationFunctionType
from tests.support import one_op, run_reference

TIME, UNITS = 5, 3


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 0.7, shape).astype(np.float32)


def operands(inputs: int, batch: int = 1, swapped: bool = False, bias: bool = True) -> list[Any]:
    """Input, weights and biases of the input, of the state, and the state; ``swapped``: of the
    state before those of the input.
    """
    rows = 3 * UNITS
    of_input = [numbers(rows, inputs), numbers(rows) if bias else None]
    of_state = [numbers(rows, UNITS) + 0.1, numbers(rows) * 2 if bias else None]
    pairs = [*of_state, *of_input] if swapped else [*of_input, *of_state]
    return [numbers(TIME, batch, inputs), *pairs, numbers(batch, UNITS)]


def by_loops(x: Array, w: Array, c: Array | None, u: Array, d: Array | None, h: Array) -> Array:
    """All states, number by number."""
    states = np.zeros((len(x), *h.shape))
    for t, batch in np.ndindex(x.shape[:2]):
        before = [float(n) for n in (h if t == 0 else states[t - 1])[batch]]
        a = [_sum(w, c, row, x[t, batch]) for row in range(3 * UNITS)]
        b = [_sum(u, d, row, before) for row in range(3 * UNITS)]
        for i in range(UNITS):
            z, r = (1 / (1 + exp(-a[k] - b[k])) for k in (i, UNITS + i))
            n = tanh(a[2 * UNITS + i] + r * b[2 * UNITS + i])
            states[t, batch, i] = z * before[i] + (1 - z) * n
    return states


def _sum(weights: Array, bias: Array | None, row: int, x: Any) -> float:
    products = sum(float(n) * float(m) for n, m in zip(weights[row], x, strict=True))
    return products + (0.0 if bias is None else float(bias[row]))


@pytest.mark.parametrize("inputs", [2, UNITS, 7])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_states_are_those_of_plain_loops(inputs: int, batch: int, bias: bool) -> None:
    given = operands(inputs, batch, bias=bias)
    wanted = by_loops(*given)
    (every,) = run_reference(GRU, given, return_sequences=True)
    (last,) = run_reference(GRU, given, time_major=True)
    np.testing.assert_allclose(every, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(last, every[-1:])


@pytest.mark.parametrize("inputs", [2, 7])
def test_operands_named_for_the_state_may_come_first(inputs: int) -> None:
    (ours,) = run_reference(GRU, operands(inputs, swapped=True))
    np.testing.assert_array_equal(ours, run_reference(GRU, operands(inputs))[0])


def test_no_steps_leave_the_state() -> None:
    given = operands(2)
    given[0] = given[0][:0]
    np.testing.assert_array_equal(run_reference(GRU, given)[0], given[-1][None])
    assert run_reference(GRU, given, return_sequences=True)[0].shape == (0, 1, UNITS)


def test_unknown_extents() -> None:
    graph = Graph()
    x, state = graph.add_input("x", (None, 1, 2)), graph.add_input("state", (1, UNITS))
    first, second = graph.add_input("hh", (9, 2)), graph.add_input("hi", (9, UNITS))
    op = GRU(x, first, None, second, None, state, return_sequences=True)
    assert op.result_shapes() == ((None, 1, UNITS),)
    op.return_sequences = False
    assert op.result_shapes() == ((1, 1, UNITS),)


@pytest.mark.parametrize(
    ("slot", "shape", "message"),
    [
        (0, (5, 2), r"input has shape \[5,2\], rank 3 is needed"),
        (1, (8, 2), "rows: hidden_hidden has 8, three times the state has 9"),
        (1, (9, 4), r"hidden_hidden is \[9,4\] and hidden_input \[9,3\]: columns for 2 inputs"),
        (2, (3,), "rows: hidden_hidden_bias has 3, three times the state has 9"),
        (3, (9,), r"hidden_input has shape \[9\], rank 2 is needed"),
        (5, (2, 3), "batches: state has 2, input has 1"),
    ],
)
def test_gru_refuses_shapes_that_do_not_fit(
    slot: int, shape: tuple[int, ...], message: str
) -> None:
    given = operands(2)
    given[slot] = numbers(*shape)
    with pytest.raises(ShapeError, match=message):
        one_op(GRU, given)


def test_gru_refuses_activations_that_are_not_its_own() -> None:
    run_reference(GRU, operands(2), activation=ActivationFunctionType.TANH)
    with pytest.raises(LucioleError, match="the fused activation is RELU, NONE or TANH is needed"):
        run_reference(GRU, operands(2), activation=ActivationFunctionType.RELU)
