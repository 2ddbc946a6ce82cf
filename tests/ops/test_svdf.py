"""SVDF: three runs against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import LucioleError, Model, ShapeError
from luciole.ir.ops.svdf import SVDF
from luciole.schema.enums import ActivationFunctionType
from tests.recurrent_support import (
    check_runs,
    integer_svdf,
    layer,
    outputs_in_litert,
    outputs_of_plan,
)

RELU = ActivationFunctionType.RELU


def svdf(rank: int = 2, bias: bool = True, hybrid: bool = False, **attributes: Any) -> Model:
    shapes: dict[str, tuple[int, ...]] = {
        "input": (3, 5),
        "weights_feature": (8, 5),
        "weights_time": (8, 6),
        "state": (3, 48),
    }
    shapes |= {"bias": (8 // rank,)} if bias else {}
    return layer(SVDF, shapes, hybrid=hybrid, rank_=rank, **attributes)


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, RELU])
def test_three_runs_are_those_of_litert(
    rank: int, bias: bool, activation: ActivationFunctionType
) -> None:
    check_runs(svdf(rank, bias, activation=activation))


@pytest.mark.parametrize("asymmetric", [False, True])
def test_integer_weights_are_those_of_litert(asymmetric: bool) -> None:
    check_runs(svdf(hybrid=True, asymmetric_quantize_inputs=asymmetric))


def test_unknown_extents() -> None:
    op = svdf().graph.ops[0]
    given = dict(op.named_operands())
    for name, shape in (("input", (None, 5)), ("state", (None, 48))):
        value = given[name]
        assert value is not None
        value.shape = shape
    assert op.result_shapes() == ((None, 4),)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("weights_feature", (8, 6), r"has shape \[8,6\], \[filters 8, inputs 5\] is needed"),
        ("weights_time", (6, 6), r"has shape \[6,6\], \[filters 8, memory \?\] is needed"),
        ("state", (3, 47), r"has shape \[3,47\], \[batch 3, filters \* memory 48\] is needed"),
        ("bias", (8,), r"bias has shape \[8\], \[units 4\] is needed"),
        ("input", (3, 1, 5), r"input has shape \[3,1,5\], rank 2 is needed"),
    ],
)
def test_svdf_refuses_shapes_that_do_not_fit(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    op = svdf().graph.ops[0]
    value = dict(op.named_operands())[name]
    assert value is not None
    value.shape = shape
    with pytest.raises(ShapeError, match=message):
        op.result_shapes()


@pytest.mark.parametrize("rank", [0, -1, 3])
def test_svdf_refuses_ranks_that_do_not_divide(rank: int) -> None:
    op = svdf().graph.ops[0]
    assert isinstance(op, SVDF)
    op.rank_ = rank
    with pytest.raises(ShapeError, match=f"rank is {rank}, the 8 filters do not divide by it"):
        op.result_shapes()


def test_svdf_refuses_a_state_that_is_no_variable() -> None:
    op = svdf().graph.ops[0]
    value = dict(op.named_operands())["state"]
    assert value is not None
    value.is_variable = False
    assert list(op.verify()) == ["state 'state' is not a variable tensor: it must be one"]


@pytest.mark.parametrize("bias", [True, False])
def test_integer_runs_are_those_of_litert(bias: bool) -> None:
    model, random = integer_svdf(bias=bias), np.random.default_rng(4)
    runs = [[random.integers(-128, 128, (3, 5)).astype(np.int8)] for _ in range(8)]
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert len(np.unique(np.stack([a for (a,) in ours]))) > 20


def test_svdf_refuses_integers_with_another_activation() -> None:
    model = integer_svdf(ActivationFunctionType.NONE)
    with pytest.raises(LucioleError, match="fused activation NONE is not RELU"):
        outputs_of_plan(model, [[np.zeros((3, 5), np.int8)]])


def test_svdf_refuses_integers_without_scales() -> None:
    model = integer_svdf()
    model.graph.outputs[0].quantization = None
    with pytest.raises(LucioleError, match="the result"):
        outputs_of_plan(model, [[np.zeros((3, 5), np.int8)]])


def test_svdf_refuses_other_integer_weights() -> None:
    model = integer_svdf()
    value = dict(model.graph.ops[0].named_operands())["weights_time"]
    assert value is not None
    value.make_constant(np.zeros((8, 6), np.int8))
    with pytest.raises(LucioleError, match="weights are int8 and int8, not int8 and int16"):
        outputs_of_plan(model, [[np.zeros((3, 5), np.int8)]])
