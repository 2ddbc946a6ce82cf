"""DILATE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, LucioleError, ShapeError
from luciole.ir.ops.dilate import Dilate
from tests.litert_support import check_same, counted, ints
from tests.support import run_reference

X = counted(2, 3, 4)


@pytest.mark.parametrize("dilations", [[1, 1, 1], [1, 2, 3], [4, 1, 2]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("constant", [(1, 2), (2,), ()])
def test_elements_lie_where_litert_has_them(
    dilations: list[int], dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    check_same(Dilate, [X.astype(dtype), ints(*dilations), np.array(7, dtype)], constant)


# LiteRT: "BytesRequired number of elements overflowed".
def test_nothing_stays_nothing() -> None:
    given = [np.zeros((0, 3), np.float32), ints(2, 2), np.array(7, np.float32)]
    assert run_reference(Dilate, given)[0].shape == (0, 5)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, value = graph.add_input("x", (None, 3)), graph.add_input("value", ())
    computed, constant = graph.add_input("d", (2,)), graph.add_constant("c", ints(2, 2))
    assert Dilate(x, constant, value).infer_shape() == (None, 5)
    assert Dilate(x, computed, value).infer_shape() == (None, None)


# LiteRT divides by a dilation of 0.
@pytest.mark.parametrize("constant", [(1,), ()])
def test_dilate_refuses_dilations_below_1(constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"dilations is \[1, 0, 3\], each must be at least 1"):
        run_reference(Dilate, [X, ints(1, 0, 3), np.array(7, np.float32)], constant)


@pytest.mark.parametrize("constant", [(1,), ()])
def test_dilate_refuses_operands_that_do_not_fit(constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="axes: dilations has 2, input has 3"):
        run_reference(Dilate, [X, ints(1, 1), np.array(7, np.float32)], constant)
    with pytest.raises(ShapeError, match="elements: padding_value has 2, a padding value has 1"):
        run_reference(Dilate, [X, ints(1, 1, 1), np.zeros(2, np.float32)], constant)


def test_dilate_refuses_absurd_computed_sizes() -> None:
    with pytest.raises(LucioleError, match="would take 25769803768 bytes"):
        run_reference(Dilate, [counted(4), ints(2**31 - 1), np.array(7, np.float32)])
