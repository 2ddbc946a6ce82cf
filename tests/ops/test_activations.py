"""Activations without attributes: numbers against LiteRT, and against double precision."""

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Op, UnsupportedError
from luciole.ir.ops import activations as ops
from luciole.kernels.arrays.fused_activation import activate
from luciole.schema.enums import ActivationFunctionType
from tests.support import one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

ALL = (
    ops.Tanh,
    ops.Logistic,
    ops.Relu,
    ops.Relu6,
    ops.ReluN1To1,
    ops.Relu0To1,
    ops.Elu,
    ops.HardSwish,
)
EXTREMES = np.array(
    [0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 88, -88, -9, 17, -104, np.inf, -np.inf, np.nan],
    np.float32,
)
RANDOM = np.random.default_rng(7).normal(0, 4, (3, 5, 701)).astype(np.float32)
LITERT_LOGISTIC = 1.3e-4
"""LiteRT's reference kernel takes e^x for the logistic function below -9."""


def litert(cls: type[Op], x: Array) -> Array:
    """LiteRT's result; ELU is not among its reference kernels, so an optimized one runs."""
    if cls is not ops.Elu:
        return run_litert(cls, [x])[0]
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=to_bytes(one_op(cls, [x]), "tflite"),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "x", [EXTREMES, RANDOM, np.array(0.3, np.float32), np.zeros((2, 0), np.float32)]
)
def test_numbers_are_those_of_litert(cls: type[Op], x: Array) -> None:
    ours, theirs = run_reference(cls, [x])[0], litert(cls, x)
    relative = LITERT_LOGISTIC if cls is ops.Logistic else 3e-7
    np.testing.assert_allclose(ours, theirs, rtol=relative, atol=1.2e-7 * (cls is ops.Logistic))


@pytest.mark.parametrize("cls", [ops.Relu, ops.Relu6, ops.ReluN1To1, ops.HardSwish])
def test_piecewise_linear_ones_are_exactly_those_of_litert(cls: type[Op]) -> None:
    np.testing.assert_array_equal(run_reference(cls, [RANDOM])[0], litert(cls, RANDOM))


def test_logistic_is_right_far_below_zero() -> None:
    x = np.linspace(-100, 20, 2001, dtype=np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(run_reference(ops.Logistic, [x])[0], exact, rtol=3e-7, atol=1.5e-45)


def test_elu_is_right_near_zero() -> None:
    x = np.array([-1e-3, -1e-6, -1e-20, 1e-20], np.float32)
    np.testing.assert_allclose(
        run_reference(ops.Elu, [x])[0], np.expm1(x.astype(np.float64)), rtol=2e-7
    )


@pytest.mark.parametrize("cls", ALL)
def test_activations_refuses_integers(cls: type[Op]) -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT"):
        run_reference(cls, [np.ones(2, np.int32)])


@pytest.mark.parametrize("cls", ALL)
def test_operands_are_left_alone(cls: type[Op]) -> None:
    x = RANDOM.copy()
    x.flags.writeable = False
    result = run_reference(cls, [x])[0]
    assert not np.shares_memory(result, x)


@pytest.mark.parametrize("activation", ops.FUSED)
def test_fused_activations_are_those_of_the_operators(activation: ActivationFunctionType) -> None:
    alone = run_reference(ops.FUSED[activation], [RANDOM])[0]
    np.testing.assert_array_equal(activate(RANDOM, activation), alone)
    low, high = ops.LIMITS.get(activation, (-1.0, 1.0))
    assert (alone.min(), alone.max()) == (low, min(high, RANDOM.max()))
    assert ops.FUSED_AS[ops.FUSED[activation]] == activation
