"""RANK against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph
from luciole.ir.ops.rank import Rank
from tests.support import run_litert, run_reference


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
@pytest.mark.parametrize("shape", [(), (4,), (2, 1, 3)])
def test_ranks_are_those_of_litert(dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, dtype)
    ours, theirs = run_reference(Rank, [x])[0], run_litert(Rank, [x])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours == len(shape)


def test_the_rank_is_known_where_extents_are_not() -> None:
    op = Rank(Graph().add_input("x", (None, None, 3)))
    assert op.result_shapes() == ((),)
    assert op.fold() == 3
