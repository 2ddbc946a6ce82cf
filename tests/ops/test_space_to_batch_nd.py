"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, LucioleError, Op, ShapeError
from luciole.ir.ops.space_to_batch_nd import BatchToSpaceND, SpaceToBatchND
from luciole.kernels.core import evaluation
from luciole.kernels.space_to_batch_nd import MOST_PLACES
from tests.litert_support import check_same, counted, ints
from tests.native_support import built, check_compiled, declines, declines_computed
from tests.support import Affine, litert, one_op, run_reference

TO_BATCH = [
    ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
    ((1, 3, 5, 2), [2, 2], [[1, 0], [0, 3]]),
    ((2, 2, 1, 1), [3, 1], [[3, 4], [2, 0]]),
    ((2, 5, 3), [3], [[2, 2]]),
]
TO_SPACE = [
    ((6, 2, 3, 2), [2, 3], [[0, 0], [0, 0]]),
    ((4, 2, 3, 2), [2, 2], [[1, 2], [0, 3]]),
    ((6, 2, 3), [3], [[4, 1]]),
]
CASES = [(SpaceToBatchND, *case) for case in TO_BATCH] + [(BatchToSpaceND, *c) for c in TO_SPACE]
every_case = pytest.mark.parametrize(("cls", "shape", "block", "borders"), CASES)


def operands(
    shape: tuple[int, ...], block: list[int], borders: object, dtype: DTypeLike
) -> list[Array]:
    return [counted(*shape, dtype=dtype), np.array(block, np.int32), np.array(borders, np.int32)]


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("constant", [(1, 2), ()])
def test_places_are_those_of_litert(
    cls: type[Op],
    shape: tuple[int, ...],
    block: list[int],
    borders: object,
    dtype: DTypeLike,
    constant: tuple[int, ...],
) -> None:
    check_same(cls, operands(shape, block, borders, dtype), constant)


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_the_compiled_moves_are_the_reference(
    cls: type[Op], shape: tuple[int, ...], block: list[int], borders: object, dtype: DTypeLike
) -> None:
    check_compiled(cls, operands(shape, block, borders, dtype), (1, 2))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized_padding_is_the_zero_point_as_in_litert(dtype: DTypeLike) -> None:
    given, same = operands(*TO_BATCH[1], dtype), [Affine(0.5, 7)]
    model = one_op(SpaceToBatchND, given, (1, 2), affine=same, results=same)
    op = model.graph.ops[0]
    (ours,) = evaluation.computed(op, list(given))
    (theirs,) = litert(to_bytes(model, "tflite"), given[:1])
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert (ours == 7).sum() > 6


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (Affine(0.5, 200), "tensor 'y0' has zero point 200, no INT8"),
        (Affine([0.5] * 2, [7, 8], 3), "tensor 'y0' has 2 scales; one is needed"),
    ],
)
def test_space_to_batch_refuses_zero_points_that_stand_for_no_border(
    grid: Affine, message: str
) -> None:
    given = operands(*TO_BATCH[1], np.int8)
    op = one_op(SpaceToBatchND, given, (1, 2), results=[grid]).graph.ops[0]
    with pytest.raises(LucioleError, match=message):
        evaluation.computed(op, list(given))
    assert built(op, given)[0] is None


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, None, 4, 8)), graph.add_input("computed", (2,))
    block = graph.add_constant("block", ints(2, 2))
    borders = graph.add_constant("borders", ints([0, 0], [1, 1]))
    assert SpaceToBatchND(x, block, borders).infer_shape() == (None, None, 3, 8)
    assert BatchToSpaceND(x, block, borders).infer_shape() == (None, None, 6, 8)
    assert SpaceToBatchND(x, computed, borders).infer_shape() == (None, None, None, 8)
    assert BatchToSpaceND(x, computed, borders).infer_shape() == (None, None, None, 8)


@pytest.mark.parametrize(
    ("cls", "shape", "block", "borders", "message"),
    [
        (SpaceToBatchND, (1, 3, 2), [2], [[0, 0]], "axis 1 has 3 padded elements, they do not"),
        (SpaceToBatchND, (1, 3, 2), [0], [[0, 0]], r"block_shape is \[0\], each must be at least"),
        (SpaceToBatchND, (1, 3, 2), [3], [[-3, 3]], r"paddings is \[\[-3, 3\]\], nothing below 0"),
        (SpaceToBatchND, (1, 3, 2), [1, 1], [[0, 0]], "axes: block_shape has 2, input between its"),
        (SpaceToBatchND, (1, 3), [1], [[0, 0]], r"input has shape \[1,3\], rank 3 or 4 is needed"),
        (BatchToSpaceND, (3, 3, 2), [2], [[0, 0]], "3 batches do not divide by the 2 places"),
        (BatchToSpaceND, (2, 3, 2), [2], [[4, 3]], "axis 1 has 6 elements, crops take more"),
        (BatchToSpaceND, (2, 3, 2), [-2], [[0, 0]], r"block_shape is \[-2\], each must"),
        (BatchToSpaceND, (2, 3, 2), [2], [[0, -1]], r"crops is \[\[0, -1\]\], nothing below 0"),
    ],
)
@pytest.mark.parametrize("constant", [(1, 2), ()])
def test_space_to_batch_refuses_blocks_that_do_not_fit(
    cls: type[Op],
    shape: tuple[int, ...],
    block: list[int],
    borders: object,
    message: str,
    constant: tuple[int, ...],
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(cls, operands(shape, block, borders, np.float32), constant)


def test_space_to_batch_refuses_absurd_computed_sizes() -> None:
    given = operands((1, 1, 1), [2**30], [[0, 2**31 - 1 - 2**30]], np.float32)
    given[2] = np.array([[0, 2**33 - 1]], np.int64)
    with pytest.raises(LucioleError, match="would take 34359738368 bytes"):
        run_reference(SpaceToBatchND, given)


@pytest.mark.parametrize("cls", [SpaceToBatchND, BatchToSpaceND])
@pytest.mark.parametrize("computed", [1, 2])
def test_compiled_moves_are_for_small_constant_blocks(cls: type[Op], computed: int) -> None:
    given = operands((4, 2, 2, 1), [2, 2], [[0, 0], [0, 0]], np.float32)
    assert declines_computed(cls, given, (1, 2), computed)
    wide = operands((MOST_PLACES + 1, 0, 1), [MOST_PLACES + 1], [[0, 0]], np.float32)
    assert declines(cls, wide, (1, 2))
