"""What says why an operator is not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Model, Op
from luciole.ir.ops.elementwise_binary import FloorMod, Mul, Pow
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reduce import ReduceProd
from luciole.ir.ops.resize import ResizeBilinear
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess
from luciole.schema.enums import ActivationFunctionType
from tests.interpreter.loop_support import Loop, model_of
from tests.ops.detection_support import BASE, operands
from tests.support import Affine, one_op

F32 = np.ones((2, 3), np.float32)
INT8, INT16 = F32.astype(np.int8), F32.astype(np.int16)
SEVERAL = Affine([0.1, 0.2, 0.3], [0, 0, 0], 1)
SIZE, AXIS = np.array([6, 8], np.int32), np.array([1], np.int32)

CASES: tuple[tuple[type[Op], list[Array], tuple[int, ...], dict[str, Any], str], ...] = (
    (Pow, [F32, F32], (), {}, "no compiled form"),
    (ReduceProd, [INT16, AXIS], (1,), {}, "no compiled form for INT16"),
    (FullyConnected, [F32, F32], (), {}, "'x1', weights or a bias, is no constant"),
    (
        Mul,
        [INT8, INT8],
        (),
        {"affine": [Affine(0.1), SEVERAL], "results": [Affine(0.1)]},
        "y has 3 scales; one is needed",
    ),
    (FloorMod, [INT16, INT16], (), {}, "divisors are computed, or 0 or -1 is among them"),
    (
        FullyConnected,
        [F32, F32],
        (1,),
        {"activation": ActivationFunctionType.SIGN_BIT},
        "no compiled form with a fused SIGN_BIT",
    ),
    (
        ResizeBilinear,
        [np.ones((1, 3, 4, 2), np.float32), SIZE],
        (),
        {},
        "the extents of 'y0' are known only when it runs",
    ),
    (TFLiteDetectionPostProcess, operands(), (), BASE, "anchors are no constants"),
)


def reasons(model: Model) -> list[str]:
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    return [step.reason for step in interpreter.plan.steps]


@pytest.mark.parametrize(("cls", "arrays", "constant", "given", "reason"), CASES)
def test_a_step_knows_why_it_is_not_compiled(
    cls: type[Op], arrays: list[Array], constant: tuple[int, ...], given: Any, reason: str
) -> None:
    assert reasons(one_op(cls, arrays, constant, **given)) == [reason]


def test_a_compiled_step_has_no_reason() -> None:
    assert reasons(one_op(Mul, [F32, F32])) == [""]


def test_a_loop_says_what_in_its_body_is_not_compiled() -> None:
    (reason,) = reasons(model_of(Loop(swap=True)))
    why = "the extents of 'body/SLICE' are known only when it runs"
    assert reason == f"SLICE in its body is not compiled: {why}"
