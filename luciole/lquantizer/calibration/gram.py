"""Second moments of inputs, as a matrix or, where few records span little of it, by what they span.

Both have the same few operations, which are all that a fit needs. With n inputs and r rows a matrix
costs n^2 numbers, and n^3 steps to solve; its factor costs n r numbers, and n r^2 steps, because
(d I + F^T F)^-1 = (I - F^T (d I + F F^T)^-1 F) / d (Woodbury's identity).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.lquantizer.formats.coded import Matrix

Wide = NDArray[np.float64]
BLOCK = 64
"""Inputs that are handled together before the rest follows."""


class Gram(ABC):
    """A symmetric matrix [n, n] of second moments, to whose diagonal something may be added; of
    each group of inputs where there are several.
    """

    @property
    @abstractmethod
    def diagonal(self) -> Matrix:
        """Its diagonal: [n]."""

    @abstractmethod
    def damped(self, ridge: Wide | float) -> Gram:
        """Add a number to the diagonal, to each group's its own: []."""

    @abstractmethod
    def solved(self, right: Matrix) -> Matrix:
        """Solve for X [n, o], where the matrix times X is ``right``; it is positive definite."""

    @abstractmethod
    def times(self, columns: Matrix) -> Matrix:
        """Multiply the matrix with columns [n, o]."""

    @abstractmethod
    def block(self, places: NDArray[np.intp]) -> Matrix:
        """Take the rows and columns of some inputs."""

    @abstractmethod
    def slope(self, errors: Matrix) -> Slope:
        """Begin to follow the matrix times errors [n, o] that change."""

    @abstractmethod
    def elimination(self, weights: Matrix) -> Elimination:
        """Begin to fix the inputs of weights [n, o], one after the other."""

    @abstractmethod
    def ordered(self, sequence: NDArray[np.intp]) -> Gram:
        """Put the inputs into another order, those of each group into their own."""


class Slope(ABC):
    """A Gram matrix times errors [n, o], while the errors of a few inputs at once change."""

    @abstractmethod
    def at(self, places: NDArray[np.intp]) -> Matrix:
        """Return its rows for some inputs."""

    @abstractmethod
    def move(self, places: NDArray[np.intp], moves: Matrix, later: NDArray[np.intp]) -> None:
        """Take in that the errors of some inputs changed by ``moves``; rows of ``later`` inputs
        alone are asked for from now on.
        """


class Elimination(ABC):
    """Inputs that are fixed in turn, while those still free make up for the errors so far: they are
    the best that there are.
    """

    @abstractmethod
    def target(self, place: int) -> Matrix:
        """Compute the best weights [o] of the next input."""

    @abstractmethod
    def fix(self, place: int, value: Matrix) -> None:
        """Set the weights of the next input to these values [o]."""


# -------------------------------------------------------------------------------- as a whole matrix
@dataclass(frozen=True)
class Full(Gram):
    """The whole matrix."""

    matrix: Matrix

    @property
    def diagonal(self) -> Matrix:
        """Its diagonal: [n]."""
        return np.asarray(np.diagonal(self.matrix, axis1=-2, axis2=-1))

    def damped(self, ridge: Wide | float) -> Gram:
        """Add a number to the diagonal, to each group's its own: []."""
        own = np.asarray(ridge, np.float32)[..., None, None]
        extra = own * np.eye(self.matrix.shape[-1], dtype=np.float32)
        return Full(np.asarray(self.matrix + extra))

    def solved(self, right: Matrix) -> Matrix:
        """Solve for what the matrix makes into ``right`` [n, o]; it is positive definite."""
        left = self.matrix.astype(np.float64)
        return np.linalg.solve(left, right.astype(np.float64)).astype(np.float32)

    def times(self, columns: Matrix) -> Matrix:
        """Multiply the matrix with columns [n, o]."""
        return self.matrix @ columns

    def block(self, places: NDArray[np.intp]) -> Matrix:
        """Take the rows and columns of some inputs."""
        return np.asarray(self.matrix[..., places[:, None], places])

    def slope(self, errors: Matrix) -> Slope:
        """Begin to follow the matrix times errors [n, o] that change."""
        return _FullSlope(self.matrix, self.matrix @ errors)

    def elimination(self, weights: Matrix) -> Elimination:
        """Begin to fix the inputs of weights [n, o], one after the other."""
        return _FullElimination(self.matrix, weights)

    def ordered(self, sequence: NDArray[np.intp]) -> Gram:
        """Put the inputs into another order."""
        if sequence.ndim == 1:
            return Full(self.block(sequence))
        rows = np.take_along_axis(self.matrix, sequence[..., :, None], -2)
        return Full(np.take_along_axis(rows, sequence[..., None, :], -1))


@dataclass
class _FullSlope(Slope):
    matrix: Matrix
    slope: Matrix

    def at(self, places: NDArray[np.intp]) -> Matrix:
        return np.asarray(self.slope[..., places, :])

    def move(self, places: NDArray[np.intp], moves: Matrix, later: NDArray[np.intp]) -> None:
        self.slope[..., later, :] += self.matrix[..., later[:, None], places] @ moves


class _FullElimination(Elimination):
    """By the triangle of the inverse (Frantar et al. 2022, "GPTQ", section 3.3). Inputs are handled
    in blocks before the rest is told, which turns rank-one updates into matrix products.
    """

    def __init__(self, matrix: Matrix, weights: Matrix) -> None:
        inverse = np.linalg.inv(matrix.astype(np.float64))
        symmetric = (inverse + np.swapaxes(inverse, -1, -2)) / 2
        self.upper = np.swapaxes(np.linalg.cholesky(symmetric), -1, -2).astype(np.float32)
        self.rest = weights.astype(np.float32)
        self.errors: list[Matrix] = []

    def target(self, place: int) -> Matrix:
        return np.asarray(self.rest[..., place, :])

    def fix(self, place: int, value: Matrix) -> None:
        begin = place - len(self.errors)
        end = min(begin + BLOCK, self.rest.shape[-2])
        row = self.upper[..., place, :, None]
        error = (self.rest[..., place, :] - value) / row[..., place, :]
        self.errors.append(error)
        self.rest[..., place + 1 : end, :] -= row[..., place + 1 : end, :] * error[..., None, :]
        if place + 1 == end:
            across = np.swapaxes(self.upper[..., begin:end, end:], -1, -2)
            self.rest[..., end:, :] -= across @ np.stack(self.errors, -2)
            self.errors = []


# ------------------------------------------------------------------------------ by what rows span
@dataclass(frozen=True)
class Spanned(Gram):
    """F^T F with a ridge on the diagonal, for a factor F [r, n] of few rows."""

    factor: Matrix
    ridge: float = 0.0

    @property
    def diagonal(self) -> Matrix:
        """Its diagonal: [n]."""
        return np.asarray(np.square(self.factor).sum(0) + np.float32(self.ridge))

    def damped(self, ridge: Wide | float) -> Gram:
        """Add a number to the diagonal, to each group's its own: []."""
        return Spanned(self.factor, self.ridge + float(ridge))

    def solved(self, right: Matrix) -> Matrix:
        """Solve for X [n, o], where the matrix times X is ``right``; it is positive definite."""
        wide, b = self.factor.astype(np.float64), right.astype(np.float64)
        small = wide @ wide.T + self.ridge * np.eye(len(wide))
        solution = (b - wide.T @ np.linalg.solve(small, wide @ b)) / self.ridge
        return solution.astype(np.float32)

    def times(self, columns: Matrix) -> Matrix:
        """Multiply the matrix with columns [n, o]."""
        spanned = self.factor.T @ (self.factor @ columns)
        return np.asarray(spanned + np.float32(self.ridge) * columns)

    def block(self, places: NDArray[np.intp]) -> Matrix:
        """Take the rows and columns of some inputs."""
        part = self.factor[:, places]
        extra = np.float32(self.ridge) * np.eye(len(places), dtype=np.float32)
        return np.asarray(part.T @ part + extra)

    def slope(self, errors: Matrix) -> Slope:
        """Begin to follow the matrix times errors [n, o] that change."""
        return _SpannedSlope(self, self.factor @ errors, errors.copy())

    def elimination(self, weights: Matrix) -> Elimination:
        """Begin to fix the inputs of weights [n, o], one after the other."""
        return _SpannedElimination(self, weights)

    def ordered(self, sequence: NDArray[np.intp]) -> Gram:
        """Put the inputs into another order."""
        return Spanned(self.factor[:, sequence], self.ridge)


@dataclass
class _SpannedSlope(Slope):
    gram: Spanned
    seen: Matrix
    errors: Matrix

    def at(self, places: NDArray[np.intp]) -> Matrix:
        spanned = self.gram.factor[:, places].T @ self.seen
        return np.asarray(spanned + np.float32(self.gram.ridge) * self.errors[places])

    def move(self, places: NDArray[np.intp], moves: Matrix, later: NDArray[np.intp]) -> None:
        self.seen += self.gram.factor[:, places] @ moves
        self.errors[places] += moves


class _SpannedElimination(Elimination):
    """The same in the rows' space: with s the sum of F_i e_i over what is fixed, the best moves of
    what is free are -F^T (d I + F F^T)^-1 s over its columns. The inverse [r, r] loses a column at
    each step (Sherman and Morrison's formula).
    """

    def __init__(self, gram: Spanned, weights: Matrix) -> None:
        self.columns: Wide = gram.factor.T.astype(np.float64)
        extra = gram.ridge * np.eye(len(gram.factor))
        self.inverse: Wide = np.asarray(np.linalg.inv(self.columns.T @ self.columns + extra))
        self.weights = weights
        self.seen: Wide = np.zeros((len(self.inverse), weights.shape[1]))

    def target(self, place: int) -> Matrix:
        moves = (self.columns[place] @ self.inverse) @ self.seen
        return np.asarray(self.weights[place] - moves, np.float32)

    def fix(self, place: int, value: Matrix) -> None:
        column = self.columns[place]
        self.seen += np.multiply.outer(column, value - self.weights[place])
        moved = self.inverse @ column
        self.inverse += np.multiply.outer(moved, moved / (1 - column @ moved))


def gram_of(centred: Matrix) -> Gram:
    """Compute the second moments of rows [r, n] whose mean is 0, or of those of each group."""
    rows, inputs = centred.shape[-2:]
    if 2 * rows < inputs and centred.ndim == 2:
        return Spanned(np.asarray(centred / np.sqrt(np.float32(rows))))
    return Full(np.asarray(np.swapaxes(centred, -1, -2) @ centred / np.float32(rows)))
