"""Parts of a step that threads share do all of the work together, in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.interpreter import compile_graph
from luciole.ir import Op
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.kernels import jit
from tests.support import one_op, run_reference

STRIDES: dict[str, Any] = {"stride_h": 1, "stride_w": 1}
CASES: list[tuple[type[Op], tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    (Conv2D, ((1, 30, 31, 16), (20, 3, 3, 16), (20,)), STRIDES),
    (DepthwiseConv2D, ((2, 60, 61, 24), (1, 3, 3, 24), (24,)), STRIDES),
    (FullyConnected, ((1, 700), (500, 700), (500,)), {}),
]


@pytest.mark.parametrize(("cls", "shapes", "attributes"), CASES)
@pytest.mark.parametrize("threads", [2, 3])
def test_all_shares_together_give_the_result(
    cls: type[Op], shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], threads: int
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    model = one_op(cls, arrays, (1, 2), **attributes)
    plan = compile_graph(model.graph, {model.graph.inputs[0]: shapes[0]})
    native = plan.steps[0].native
    assert native is not None
    assert native.split is not None
    x, y = plan.array(model.graph.inputs[0]), plan.array(model.graph.outputs[0])
    assert x is not None
    assert y is not None
    x[...], y[...] = arrays[0], np.nan
    (records,) = native.split(threads)
    assert len(records) == threads
    for i, record in enumerate(reversed(records)):
        jit.caller(np.array([[native.address, record.ctypes.data]], np.int64))()
        assert np.isnan(y).any() == (i < threads - 1)
    (want,) = run_reference(cls, arrays, (1, 2), **attributes)
    np.testing.assert_allclose(y, want, rtol=0, atol=5e-6 * np.abs(want).max())


def test_little_work_is_not_shared() -> None:
    arrays = [np.ones(s, np.float32) for s in ((1, 3, 3, 2), (4, 3, 3, 2))]
    model = one_op(Conv2D, arrays, (1,), **STRIDES)
    native = compile_graph(model.graph, {model.graph.inputs[0]: (1, 3, 3, 2)}).steps[0].native
    assert native is not None
    assert native.split is not None
    assert list(native.split(4)) == []
