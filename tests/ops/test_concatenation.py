"""CONCATENATION against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, UnsupportedError
from luciole.ir.ops.concatenation import Concatenation
from luciole.kernels.core import registry
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import declines
from tests.support import Affine, one_op, run_litert, run_reference


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.bool_])
def test_concatenation_gives_what_litert_gives(axis: int, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(axis + 3)
    arrays: list[Array] = []
    for n in (3, 1, 4):
        shape = [2, 3, 4]
        shape[axis] = n
        arrays.append(rng.integers(-9, 9, shape).astype(dtype))
    ours, theirs = (
        run(Concatenation, arrays, (1,), axis=axis)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_concatenation_of_one_tensor_is_a_copy() -> None:
    x = np.arange(6, dtype=np.float32)
    (y,) = run_reference(Concatenation, [x])
    np.testing.assert_array_equal(y, x, strict=True)
    assert not np.shares_memory(x, y)


def test_concatenation_with_nothing_changes_nothing() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = run_reference(Concatenation, [x, np.zeros((0, 3), np.float32)])
    np.testing.assert_array_equal(y, x, strict=True)


def test_concatenation_applies_its_activation() -> None:
    x = np.array([-1, 3, 8], np.float32)
    (y,) = run_reference(Concatenation, [x, x], activation=ActivationFunctionType.RELU6)
    np.testing.assert_array_equal(y, np.array([0, 3, 6, 0, 3, 6], np.float32), strict=True)


def test_concatenation_keeps_unknown_dimensions() -> None:
    graph = Graph()
    inputs = (graph.add_input("a", (None, 2, 3)), graph.add_input("b", (4, None, 5)))
    assert Concatenation(inputs, axis=2).infer_shape() == (4, 2, 8)
    inputs = (graph.add_input("c", (None, None)), graph.add_input("d", (4, None)))
    assert Concatenation(inputs, axis=0).infer_shape() == (None, None)


@pytest.mark.parametrize(
    ("shapes", "axis", "message"),
    [
        ([(2, 3), (2, 4)], 0, "axis 1 of the inputs has 3, 4 elements, they must be as many"),
        ([(2, 3), (2,)], 0, r"the inputs are \[2,3\], \[2\]: their ranks differ"),
        ([(2, 3)], 2, "axis is 2, the tensor has 2 axes"),
        ([(), ()], 0, "axis is 0, the tensor has 0 axes"),
        ([], 0, "there is no input, at least one is needed"),
    ],
)
def test_concatenation_refuses_shapes_that_do_not_fit(
    shapes: list[tuple[int, ...]], axis: int, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(Concatenation, [np.zeros(s, np.float32) for s in shapes], axis=axis)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.float16])
def test_small_numbers_are_concatenated_like_in_litert(dtype: type[np.generic]) -> None:
    pair = [np.arange(6).reshape(2, 3).astype(dtype), np.arange(4).reshape(2, 2).astype(dtype)]
    ours, theirs = (run(Concatenation, pair, axis=1)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.003])
def test_other_grids_are_brought_to_that_of_the_result(scale: float) -> None:
    x = np.arange(256, dtype=np.uint8)
    given: Any = {"affine": [Affine(0.05, 3), Affine(scale, 130)], "results": [Affine(0.05, 3)]}
    ours, theirs = (run(Concatenation, [x, x], **given)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert declines(Concatenation, [x, x], **given)
    signed = (x.astype(int) - 128).astype(np.int8)  # LiteRT refuses these
    given = {
        "affine": [Affine(0.05, 3 - 128), Affine(scale, 130 - 128)],
        "results": [Affine(0.05, 3 - 128)],
    }
    shifted = run_reference(Concatenation, [signed, signed], **given)[0]
    assert np.max(np.abs(shifted.astype(int) + 128 - ours)) <= 1


def test_concatenation_refuses_types_that_differ() -> None:
    op = one_op(Concatenation, [np.zeros(2, np.float32), np.zeros(2, np.int32)]).graph.ops[0]
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32 x INT32"):
        registry.find_reference(op)
