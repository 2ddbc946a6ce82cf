"""TILE against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.tile import Tile
from luciole.kernels.core.errors import ExecutionError
from tests.native_support import check_compiled, declines_computed
from tests.support import run_litert, run_reference


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize(
    ("shape", "multiples"),
    [((3,), [4]), ((2, 3), [1, 1]), ((3, 1, 4), [1, 2, 3]), ((2, 17, 5), [3, 1, 2])],
)
def test_copies_are_those_of_litert(
    dtype: DTypeLike, shape: tuple[int, ...], multiples: list[int]
) -> None:
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    for index, constant in ((np.int32, (1,)), (np.int64, ())):
        arrays = [x, np.array(multiples, index)]
        ours, theirs = (run(Tile, arrays, constant)[0] for run in (run_reference, run_litert))
        np.testing.assert_array_equal(ours, theirs, strict=True)
    check_compiled(Tile, arrays, (1,))
    assert declines_computed(Tile, arrays, (1,), 1)


@pytest.mark.parametrize(("shape", "multiples"), [((2, 3), [0, 2]), ((0, 3), [4, 2]), ((), [])])
def test_no_copies_and_copies_of_nothing(shape: tuple[int, ...], multiples: list[int]) -> None:
    arrays = [np.ones(shape, np.float32), np.array(multiples, np.int32)]
    wanted = tuple(n * m for n, m in zip(shape, multiples, strict=True))
    assert run_reference(Tile, arrays)[0].shape == wanted
    check_compiled(Tile, arrays, (1,))


def test_unknown_extents_stay_unknown() -> None:
    graph = Graph()
    x = graph.add_input("x", (None, 3))
    twice = graph.add_constant("m", np.array([2, 2], np.int32))
    assert Tile(x, twice).result_shapes() == ((None, 6),)
    computed = graph.add_input("n", (2,), TensorType.INT32)
    assert Tile(x, computed).result_shapes() == ((None, None),)


@pytest.mark.parametrize(
    ("multiples", "message"),
    [
        ([2, -1], r"multiples is \[2, -1\], nothing below 0 is possible"),
        ([2], "axes: multiples has 1, input has 2"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_tile_refuses_multiples_that_cannot_be(
    multiples: list[int], message: str, constant: tuple[int, ...]
) -> None:
    arrays: list[Array] = [np.ones((2, 3), np.float32), np.array(multiples, np.int32)]
    with pytest.raises(ShapeError, match=message):
        run_reference(Tile, arrays, constant)


def test_tile_refuses_an_absurd_size() -> None:
    arrays: list[Array] = [np.ones((2, 3), np.float32), np.array([2**40, 2**40], np.int64)]
    with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed"):
        run_reference(Tile, arrays)
