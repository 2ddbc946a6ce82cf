"""MATRIX_DIAG and MATRIX_SET_DIAG against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, LucioleError, ShapeError
from luciole.ir.ops.matrix_diag import MatrixDiag, MatrixSetDiag
from luciole.kernels.core import evaluation
from tests.litert_support import check_same, counted
from tests.support import one_op, run_reference

every_type = pytest.mark.parametrize(
    "dtype", [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64]
)


@every_type
@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 1), (1, 2, 3, 2)])
def test_matrices_are_those_of_litert(dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    check_same(MatrixDiag, [counted(*shape, dtype=dtype)])


@every_type
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4), (1, 2, 1, 5)])
def test_matrices_with_other_diagonals_are_those_of_litert(
    dtype: DTypeLike, shape: tuple[int, ...]
) -> None:
    diagonal = (-counted(*shape[:-2], min(shape[-2:]))).astype(dtype)
    check_same(MatrixSetDiag, [counted(*shape, dtype=dtype), diagonal])


def test_empty_matrices_stay_empty() -> None:
    assert run_reference(MatrixDiag, [np.zeros((2, 0), np.float32)])[0].shape == (2, 0, 0)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    diagonal, matrices = graph.add_input("d", (2, None)), graph.add_input("x", (None, 3, None))
    assert MatrixDiag(diagonal).infer_shape() == (2, None, None)
    assert MatrixSetDiag(matrices, diagonal).infer_shape() == (None, 3, None)


def test_matrix_diag_refuses_a_scalar() -> None:
    with pytest.raises(ShapeError, match="diagonal is a scalar, an axis is needed"):
        one_op(MatrixDiag, [np.array(1, np.float32)])


def test_matrix_diag_refuses_absurd_computed_sizes() -> None:
    op = one_op(MatrixDiag, [counted(3)]).graph.ops[0]
    op.results[0].shape = (None, None)
    long = np.broadcast_to(np.float32(0), (2**20,))
    with pytest.raises(LucioleError, match="would take 4398046511104 bytes"):
        evaluation.computed(op, [long])


@pytest.mark.parametrize(
    ("shape", "diagonal", "message"),
    [
        ((3,), (), r"input is \[3\] and diagonal \[\], matrices and an axis less are needed"),
        ((2, 3, 3), (3,), r"input is \[2,3,3\] and diagonal \[3\], matrices"),
        ((2, 3, 3), (3, 3), "axis 0: input has 2, diagonal has 3"),
        ((2, 4), (4,), "elements of a diagonal: input has 2, diagonal has 4"),
    ],
)
def test_matrix_set_diag_refuses_diagonals_that_do_not_fit(
    shape: tuple[int, ...], diagonal: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(MatrixSetDiag, [counted(*shape), counted(*diagonal)])
