"""Operators on integers for which there is no kernel are computed in floats."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.interpreter.observe import ActivationSaver
from luciole.ir import Array, LucioleError, Model, Op, TensorType, UnsupportedError
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine as Grid
from tests.support import Affine, one_op, run_reference

RNG = np.random.default_rng(7)
INPUT, RESULT = Affine(0.05, 100), Affine(1 / 255, 0, dtype=TensorType.UINT8)


def codes(*shape: int, dtype: type = np.uint8) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def ran(model: Model, x: Array) -> tuple[Interpreter, Array]:
    interpreter = Interpreter(model)
    (y,) = interpreter.run({model.graph.inputs[0].name: x}).values()
    return interpreter, y


def softmax() -> Model:
    return one_op(Softmax, [codes(3, 5)], affine=[INPUT], results=[RESULT], beta=1.0)


def test_a_free_scale_of_softmax_is_computed_in_floats() -> None:
    model, x = softmax(), codes(3, 5)
    interpreter, y = ran(model, x)
    real = Grid.of(model.graph.inputs[0], "x").decode(x).astype(np.float32)
    (wanted,) = run_reference(Softmax, [real], beta=1.0)
    nearest = Grid.of(model.graph.outputs[0], "y").encode(wanted)
    assert y.dtype == np.uint8
    assert np.abs(y.astype(int) - nearest).max() <= 1  # the compiled exponential rounds otherwise
    assert np.mean(y == nearest) > 0.9
    (reason,) = interpreter.plan.simulated.values()
    assert reason == (
        "the result has scale 0.003921568859368563 and zero point 0; 0.00390625 and 0 are needed: "
        "computed in floats, between DEQUANTIZE and QUANTIZE"
    )
    assert list(interpreter.plan.simulated) == model.graph.ops


def test_a_tensor_inside_holds_its_integers() -> None:
    """Observers and readers see those of the graph, not the floats that stand behind them."""
    model = softmax()
    graph = model.graph
    (inside,) = graph.outputs
    shape = graph.add_constant("shape", np.array([15], np.int32))
    graph.append(Reshape(inside, shape, new_shape=(15,)), "flat")
    flat = graph.ops[-1].output
    flat.quantization, graph.outputs = inside.quantization, [flat]
    interpreter = Interpreter(model, keep_tensors=True)
    saver = ActivationSaver(graph.values)
    interpreter.attach_observer(saver)
    (y,) = interpreter.run({graph.inputs[0].name: codes(3, 5)}).values()
    assert saver.saved(inside).dtype == np.uint8
    np.testing.assert_array_equal(saver.saved(inside).ravel(), y)
    np.testing.assert_array_equal(interpreter.get_tensor(graph.values.index(inside)).ravel(), y)
    np.testing.assert_array_equal(saver.saved(flat), y)


@pytest.mark.parametrize(("cls", "dtype"), [(InstanceNorm, np.uint8), (Neg, np.uint8)])
def test_operators_without_integers_run(cls: type[Op], dtype: type) -> None:
    x = codes(1, 4, 4, 3, dtype=dtype)
    operands, affine = [x], [INPUT]
    if cls is InstanceNorm:
        operands += [np.ones(3, dtype), np.zeros(3, dtype)]
        affine += [Affine([0.5, 1.0, 2.0], [0, 0, 0]), Affine(1.0, 0)]
    constant = range(1, len(operands))
    model = one_op(cls, operands, [*constant], affine=affine, results=[Affine(0.05, 120)])
    interpreter, y = ran(model, x)
    assert y.dtype == dtype
    assert len(interpreter.plan.simulated) == 1
    assert "no kernel for UINT8" in next(iter(interpreter.plan.simulated.values()))


def test_known_kernels_keep_their_integers() -> None:
    model = one_op(Softmax, [codes(3, 5)], affine=[INPUT], results=[Affine(1 / 256, 0)], beta=1.0)
    interpreter, _ = ran(model, codes(3, 5))
    assert not interpreter.plan.simulated
    assert [step.op.kind for step in interpreter.plan.steps] == ["SOFTMAX"]


def test_broken_scales_are_refused_as_before() -> None:
    """They stand for no numbers, so that there are no floats to compute with."""
    model = one_op(Softmax, [codes(3, 5)], affine=[Affine(0.0, 0)], results=[RESULT], beta=1.0)
    with pytest.raises(LucioleError, match="and 0 are needed"):
        ran(model, codes(3, 5))
    plain = one_op(Neg, [codes(3, 5)])
    with pytest.raises(UnsupportedError, match="no kernel for UINT8"):
        ran(plain, codes(3, 5))
