"""StableHLO's element-wise operators against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import stablehlo_elementwise as ops
from luciole.kernels.stablehlo_elementwise import INTEGERS, NUMBERS, SHIFTED
from luciole.schema.enums import TensorType
from tests.litert_support import check_same
from tests.support import run_reference

ARITHMETIC = [ops.StablehloAdd, ops.StablehloMultiply, ops.StablehloMaximum, ops.StablehloMinimum]
CASES = [(cls, dtype) for cls in ARITHMETIC for dtype in NUMBERS]
CASES += [(ops.StablehloAnd, dtype) for dtype in INTEGERS]


@pytest.mark.parametrize(("cls", "dtype"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_results_are_those_of_litert(cls: type[ops.StablehloBinary], dtype: TensorType) -> None:
    """Sums and products of integers wrap around."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (2, 3, 7, 2)).astype(np.uint8).astype(NUMPY[dtype])
    check_same(cls, [x, y], resolver="AUTO")


@pytest.mark.parametrize("dtype", SHIFTED)
def test_shifts_are_those_of_litert(dtype: TensorType) -> None:
    kind = NUMPY[dtype]
    y = np.arange(8 * kind.itemsize).astype(kind)
    for number in (1, -1, 77):
        x = np.full(y.shape, number, kind)
        check_same(ops.StablehloShiftLeft, [x, y], resolver="AUTO")


def test_shifts_by_places_that_there_are_not_leave_nothing() -> None:
    """StableHLO's specification; C++ leaves it open."""
    y = np.array([8, 127, -1, 7], np.int8)
    (found,) = run_reference(ops.StablehloShiftLeft, [np.ones(4, np.int8), y])
    assert found.tolist() == [0, 0, 0, -128]


def test_unknown_dimensions_are_those_of_the_other_operand() -> None:
    graph = Graph()
    x, y = graph.add_input("x", (None, 3, None)), graph.add_input("y", (2, None, None))
    assert ops.StablehloAdd(x, y).infer_shape() == (2, 3, None)


def test_stablehlo_add_refuses_to_stretch() -> None:
    graph = Graph()
    x, y = graph.add_input("x", (2, 3)), graph.add_input("y", (3,))
    with pytest.raises(ShapeError, match=r"x is \[2,3\] and y \[3\], both must be the same"):
        ops.StablehloAdd(x, y).infer_shape()
