"""LOGICAL_OR, LOGICAL_AND and LOGICAL_NOT against LiteRT."""

import numpy as np
import pytest

from luciole.ir import Array, Op, UnsupportedError
from luciole.ir.ops.logical import LogicalAnd, LogicalNot, LogicalOr
from tests.support import run_litert, run_reference

TRUTH = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize("cls", [LogicalOr, LogicalAnd])
@pytest.mark.parametrize("y", [TRUTH[:, ::-1], TRUTH[:, :1], TRUTH[0], np.array(True)])
def test_pairs_are_those_of_litert(cls: type[Op], y: Array) -> None:
    pair = [TRUTH, np.ascontiguousarray(y)]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_the_opposite_is_that_of_litert() -> None:
    ours, theirs = run_reference(LogicalNot, [TRUTH])[0], run_litert(LogicalNot, [TRUTH])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(("cls", "count"), [(LogicalOr, 2), (LogicalAnd, 2), (LogicalNot, 1)])
def test_logic_refuses_numbers(cls: type[Op], count: int) -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is BOOL"):
        run_reference(cls, [np.ones(2, np.int32)] * count)
