"""REVERSE_SEQUENCE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.reverse_sequence import ReverseSequence
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

X = counted(2, 3, 4)


@pytest.mark.parametrize(
    ("lengths", "seq", "batch"),
    [
        ([2, 3], 1, 0),
        ([1, 4], 2, 0),
        ([2, 0, 1, 2], 0, 2),
        ([1, 2, 2], 0, 1),
        ([0, -3], 1, 0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_order_is_that_of_litert(
    lengths: list[int], seq: int, batch: int, dtype: DTypeLike, index: DTypeLike
) -> None:
    arrays = [X.astype(dtype), np.array(lengths, index)]
    check_same(ReverseSequence, arrays, seq_dim=seq, batch_dim=batch)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, lengths = graph.add_input("x", (None, 3)), graph.add_input("lengths", (None,))
    assert ReverseSequence(x, lengths, seq_dim=1).infer_shape() == (None, 3)


# LiteRT looks only at the first length and writes beyond the tensor for a later one.
@pytest.mark.parametrize("lengths", [[4, 1], [1, 4]])
def test_reverse_sequence_refuses_lengths_beyond_the_axis(lengths: list[int]) -> None:
    with pytest.raises(ShapeError, match="seq_lengths has 4, axis 1 has 3 elements"):
        run_reference(ReverseSequence, [X, ints(*lengths)], seq_dim=1)


@pytest.mark.parametrize(
    ("lengths", "seq", "batch", "message"),
    [
        ([1, 1], 1, 1, "seq_dim and batch_dim are both 1, they must differ"),
        ([1, 1], 3, 0, "seq_dim is 3, the tensor has 3 axes"),
        ([1, 1], -1, 0, "seq_dim is -1"),
        ([1, 1], 1, 3, "batch_dim is 3"),
        ([1, 1, 1], 1, 0, "elements: seq_lengths has 3, the batch axis has 2"),
    ],
)
def test_reverse_sequence_refuses_axes_that_do_not_fit(
    lengths: list[int], seq: int, batch: int, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(ReverseSequence, [X, ints(*lengths)], seq_dim=seq, batch_dim=batch)
