"""MATRIX_DIAG and MATRIX_SET_DIAG kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.matrix_diag import MatrixDiag, MatrixSetDiag
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(MatrixDiag, *ANY)
def matrix_diag(op: MatrixDiag, diagonal: Array) -> Array:
    """Put vectors on diagonals, with zeros beside them."""
    y = np.zeros(affordable(op, (*diagonal.shape, diagonal.shape[-1])), diagonal.dtype)
    _diagonals(y)[...] = diagonal
    return y


@reference(MatrixSetDiag, *ANY)
def matrix_set_diag(op: MatrixSetDiag, x: Array, diagonal: Array) -> Array:
    """Copy matrices with other diagonals."""
    y = x.copy()
    _diagonals(y)[...] = diagonal
    return y


def _diagonals(matrices: Array) -> Array:
    """Return a writable view of the diagonals [.., min(m, n)]."""
    n = min(matrices.shape[-2:])
    return np.asarray(np.einsum("...ii->...i", matrices[..., :n, :n]))
