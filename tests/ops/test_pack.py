"""PACK against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.pack import Pack
from tests.support import one_op, run_litert, run_reference


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_pack_gives_what_litert_gives(axis: int, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 99, (2, 3)).astype(dtype) for _ in range(3)]
    ours, theirs = (
        run(Pack, arrays, (1,), axis=axis, values_count=3)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_pack_makes_a_vector_of_scalars() -> None:
    (y,) = run_reference(Pack, [np.array(3, np.int32), np.array(5, np.int32)], values_count=2)
    np.testing.assert_array_equal(y, np.array([3, 5], np.int32), strict=True)


def test_pack_of_one_tensor_is_a_copy() -> None:
    x = np.array([True, False, True])
    (y,) = run_reference(Pack, [x], values_count=1)
    np.testing.assert_array_equal(y, x[None], strict=True)
    assert not np.shares_memory(x, y)


def test_pack_keeps_unknown_dimensions() -> None:
    graph = Graph()
    inputs = (graph.add_input("a", (None, None)), graph.add_input("b", (4, None)))
    assert Pack(inputs, axis=1, values_count=2).infer_shape() == (4, 2, None)


@pytest.mark.parametrize(
    ("shapes", "axis", "message"),
    [
        ([(2, 3), (2, 4)], 0, "axis 1 of the inputs has 3, 4 elements, they must be as many"),
        ([(2,), ()], 0, r"the inputs are \[2\], \[\]: their ranks differ"),
        ([(2,)], 2, "axis is 2, the tensor has 2 axes"),
        ([], 0, "there is no input, at least one is needed"),
    ],
)
def test_pack_refuses_shapes_that_do_not_fit(
    shapes: list[tuple[int, ...]], axis: int, message: str
) -> None:
    arrays = [np.zeros(s, np.float32) for s in shapes]
    with pytest.raises(ShapeError, match=message):
        one_op(Pack, arrays, axis=axis, values_count=len(shapes))


def test_pack_refuses_a_wrong_count() -> None:
    op = one_op(Pack, [np.zeros(2, np.float32)] * 2, values_count=3).graph.ops[0]
    assert list(op.verify()) == ["values_count is 3, there are 2 inputs"]
