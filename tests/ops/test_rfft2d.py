"""RFFT2D against LiteRT, and against the definition of the transform."""

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.rfft2d import Rfft2d
from luciole.kernels.core.errors import ExecutionError
from tests.support import run_litert, run_reference

X = np.random.default_rng(0).normal(size=(2, 4, 8)).astype(np.float32)


@pytest.mark.parametrize("lengths", [[4, 8], [2, 4], [4, 4], [8, 16], [1, 8]])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_transforms_are_those_of_litert(lengths: list[int], constant: tuple[int, ...]) -> None:
    arrays = [X, np.array(lengths, np.int32)]
    ours, theirs = (run(Rfft2d, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5, strict=True)


def waves(length: int, frequencies: int) -> Array:
    return np.asarray(
        np.exp(-2j * np.pi * np.outer(np.arange(frequencies), np.arange(length)) / length)
    )


@pytest.mark.parametrize("lengths", [(3, 5), (1, 1), (4, 7)])
def test_other_lengths_are_transformed_too(lengths: tuple[int, int]) -> None:
    # LiteRT: IsPowerOfTwo(fft_length_data[0]) was not true; and its [1, 1] has an imaginary part.
    rows, columns = lengths
    part = X[:, :rows, :columns]
    wanted = waves(rows, rows) @ part @ waves(columns, columns // 2 + 1).T
    ours = run_reference(Rfft2d, [X, np.array(lengths, np.int32)])[0]
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)


def test_unknown_lengths_leave_unknown_extents() -> None:
    graph = Graph()
    x, lengths = graph.add_input("x", (None, 4, 8)), graph.add_input("n", (2,), TensorType.INT32)
    op = Rfft2d(x, lengths)
    assert op.result_shapes() == ((None, None, None),)
    assert op.result_dtypes() == (TensorType.COMPLEX64,)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([0, 4], r"fft_length is \[0, 4\], both must be at least 1"),
        ([4, -8], "both must be at least 1"),
        ([4], "entries: fft_length has 1, a transform has 2"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_rfft2d_refuses_lengths_that_cannot_be(
    lengths: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Rfft2d, [X, np.array(lengths, np.int32)], constant)


def test_rfft2d_refuses_a_vector() -> None:
    with pytest.raises(ShapeError, match=r"input is \[8\], at least two axes are needed"):
        run_reference(Rfft2d, [X[0, 0], np.array([1, 8], np.int32)], (1,))


def test_rfft2d_refuses_absurd_lengths() -> None:
    with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed"):
        run_reference(Rfft2d, [X, np.array([2**31 - 1] * 2, np.int32)])
