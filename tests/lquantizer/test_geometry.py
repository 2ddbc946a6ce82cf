"""Rows times weights are what the reference kernels compute."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Graph, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.kernels.core import evaluation
from luciole.lquantizer.calibration.rows import (
    Dense,
    Sampling,
    input_rows,
    output_rows,
    positions,
    weight_rows,
)
from luciole.schema.enums import Padding
from tests.networks import dense, random


def reference(op: Dense, x: Array) -> Array:
    """What the operator's reference kernel makes of a batch."""
    arrays = [x, *(None if v is None else v.data for v in op.operands[1:])]
    (y,) = evaluation.computed(op, arrays)
    return y


def convolution(
    image: tuple[int, int, int],
    kernel: tuple[int, int],
    padding: Padding = Padding.SAME,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
) -> Conv2D:
    """Five filters over images (height, width, channels); pairs are (height, width)."""
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (None, *image))
    op = Conv2D(
        x,
        graph.add_constant("f", random(2, 5, *kernel, image[2])),
        None,
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
    )
    graph.append(op, "y")
    return op


def assert_rows_give_the_outputs(op: Dense, x: Array, most: int) -> None:
    y = reference(op, x)
    count = positions(op, x)
    assert count == y[0].size // len(weight_rows(op))
    picks = Sampling(most, seed=4).picks(count, range(len(x)))
    assert picks.shape == (len(x), min(most, count))
    found = input_rows(op, x, picks).values @ weight_rows(op).T
    wanted = output_rows(y, len(weight_rows(op)), picks)
    assert found.shape == (len(x) * min(most, count), len(weight_rows(op)))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("most", [1000, 7])
@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
@pytest.mark.parametrize(
    ("image", "kernel", "stride", "dilation"),
    [
        ((8, 8, 3), (3, 3), (1, 1), (1, 1)),
        ((9, 6, 2), (3, 2), (2, 1), (1, 1)),
        ((7, 11, 4), (2, 5), (1, 3), (1, 1)),
        ((10, 9, 2), (3, 3), (1, 1), (2, 3)),
        ((5, 5, 3), (1, 1), (2, 2), (1, 1)),
        ((4, 6, 1), (4, 6), (1, 1), (1, 1)),
    ],
)
def test_rows_of_a_convolution(
    image: tuple[int, int, int],
    kernel: tuple[int, int],
    padding: Padding,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    most: int,
) -> None:
    op = convolution(image, kernel, padding, stride, dilation)
    assert_rows_give_the_outputs(op, random(3, 3, *image), most)


@pytest.mark.parametrize(
    ("shape", "keep_num_dims"), [((6,), False), ((4, 6), True), ((2, 3, 6), True), ((3, 2), False)]
)
def test_rows_of_a_dense_layer(shape: tuple[int, ...], keep_num_dims: bool) -> None:
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (None, *shape))
    op = dense(graph, x, (5, 6), "fc", bias=False, keep_num_dims=keep_num_dims)
    assert_rows_give_the_outputs(op, random(3, 4, *shape), 3)


def test_weights_are_one_row_for_each_output() -> None:
    op = convolution((4, 4, 3), (2, 2))
    data = op.filter.data
    assert data is not None
    matrix = weight_rows(op)
    assert matrix.shape == (5, 12)
    assert matrix[3, 2 * 3 + 1] == data[3, 1, 0, 1]  # kernel rows, then columns, then channels


@pytest.mark.parametrize(("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 2))])
def test_what_is_inside_the_image(stride: tuple[int, int], dilation: tuple[int, int]) -> None:
    """Images without any zero: what a row holds besides zeros is inside."""
    op = convolution((5, 7, 2), (3, 3), Padding.SAME, stride, dilation)
    x = np.abs(random(1, 2, 5, 7, 2)) + 1
    picks = Sampling(1000, 0).picks(positions(op, x), range(2))
    rows = input_rows(op, x, picks)
    assert rows.inside is not None
    assert rows.inside.shape == rows.values.shape
    np.testing.assert_array_equal(rows.inside, rows.values != 0)
    assert 0 < np.count_nonzero(~rows.inside) < rows.inside.size


def test_everything_is_inside_a_valid_convolution() -> None:
    op = convolution((5, 7, 2), (3, 3), Padding.VALID)
    x = random(1, 2, 5, 7, 2)
    rows = input_rows(op, x, Sampling(1000, 0).picks(positions(op, x), range(2)))
    assert rows.inside is not None
    assert rows.inside.all()


def test_a_dense_layer_has_no_border() -> None:
    graph = Model().add_graph(Graph("main"))
    op = dense(graph, graph.add_input("x", (None, 6)), (5, 6), "fc")
    assert isinstance(op, FullyConnected)
    assert input_rows(op, random(0, 2, 6), Sampling(9, 0).picks(1, range(2))).inside is None


# --------------------------------------------------------------------------------------- picks
def test_picks_are_all_positions_where_there_are_few() -> None:
    np.testing.assert_array_equal(Sampling(4, 0).picks(4, range(3)), [[0, 1, 2, 3]] * 3)


def test_picks_are_different_positions() -> None:
    picks = Sampling(8, 0).picks(50, range(10))
    assert picks.shape == (10, 8)
    assert all(len(set(row)) == 8 for row in picks.tolist())
    assert picks.min() >= 0
    assert picks.max() < 50
    assert len({tuple(row) for row in picks.tolist()}) == 10


def test_picks_depend_on_the_record_and_the_seed_and_not_on_the_batch() -> None:
    sampling = Sampling(8, 5)
    together = sampling.picks(50, range(10))
    apart = np.concatenate([sampling.picks(50, range(3)), sampling.picks(50, range(3, 10))])
    np.testing.assert_array_equal(together, apart)
    assert not np.array_equal(together, Sampling(8, 6).picks(50, range(10)))
