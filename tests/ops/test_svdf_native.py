"""The compiled SVDF against the reference and LiteRT, on sizes that fill vectors and do not."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.kernels.core import evaluation, registry
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import built, run_steps
from tests.ops.svdf_support import RELU, Sizes, float_svdf, integer_svdf
from tests.recurrent_support import outputs_in_litert, outputs_of_plan, sequences

pytestmark = pytest.mark.filterwarnings("error")

SIZES = [
    (1, 1, 1, 1, 1),
    (3, 5, 4, 6, 2),
    (2, 33, 130, 17, 1),
    (1, 40, 130, 18, 2),
    (1, 16, 64, 40, 4),
]
"""Batches, inputs, units, memory and rank."""

EVERY_SIZE = pytest.mark.parametrize("sizes", SIZES)


def rows(model: Model, count: int = 4) -> list[list[Array]]:
    random, shape = np.random.default_rng(8), model.graph.inputs[0].dims
    return [[random.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]


def check_compiled(model: Model, runs: list[list[Array]], tolerance: float = 0) -> None:
    """Results and states of several runs are the reference's."""
    op = model.graph.ops[0]
    kernel, operands = registry.find_reference(op), operands_of(op)
    step, context = built(op, operands)
    assert step is not None
    for (x,) in runs:
        operands[0] = x
        (wanted,) = evaluation.call(kernel, op, operands)
        given, state, last = context.operands[0], context.operands[-1], operands[-1]
        assert given is not None
        assert state is not None
        assert last is not None
        given[...] = x
        run_steps(step, [step.record])
        for ours, theirs in ((context.results[0], wanted), (state, last)):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def operands_of(op: Op) -> list[Array | None]:
    def contents(value: Value | None) -> Array | None:
        if value is None or value.data is not None:
            return None if value is None else value.data
        dtypes = {TensorType.INT8: np.int8, TensorType.INT16: np.int16}
        return np.zeros(value.dims, dtypes.get(value.dtype, np.float32))

    return [contents(value) for value in op.operands]


@EVERY_SIZE
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, RELU])
def test_float_results_and_states_are_those_of_the_reference(
    sizes: Sizes, hybrid: bool, activation: ActivationFunctionType
) -> None:
    model = float_svdf(sizes, hybrid, activation=activation)
    check_compiled(model, sequences(model), 2e-5)


@EVERY_SIZE
def test_asymmetric_results_are_those_of_litert(sizes: Sizes) -> None:
    model = float_svdf(sizes, True, asymmetric_quantize_inputs=True)
    runs = sequences(model)
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


@EVERY_SIZE
def test_integers_are_those_of_the_reference_and_litert(sizes: Sizes) -> None:
    model = integer_svdf(sizes)
    runs = rows(model)
    check_compiled(model, runs)
    check_litert(model, runs)


def check_litert(model: Model, runs: list[list[Array]]) -> None:
    """Integers are the very same."""
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_sums_beyond_a_state_are_cut_off() -> None:
    model = integer_svdf((2, 33, 130, 17, 1), (0.01, 1e-6))
    runs = rows(model)
    check_compiled(model, runs)
    check_litert(model, runs)


def test_what_compiled_kernels_do_not_have_is_left_to_the_reference() -> None:
    tanh = float_svdf(SIZES[1], activation=ActivationFunctionType.TANH)
    steep = integer_svdf(SIZES[1], (0.01, 1e-14))
    for model in (tanh, steep):
        op = model.graph.ops[0]
        assert built(op, operands_of(op))[0] is None
