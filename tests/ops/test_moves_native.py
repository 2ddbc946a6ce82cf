"""The compiled kernel that moves elements, for every operator that uses it, against the references.

NumPy's own indexing is the references' way; the kernel walks memory by steps.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.exporters import to_bytes
from luciole.ir import Array, Op
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unpack import Unpack
from luciole.kernels.gather import MOST_PICKED
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import check_compiled, declines, declines_computed, run_compiled
from tests.support import litert, one_op

pytestmark = pytest.mark.filterwarnings("error")

SIZES: tuple[DTypeLike, ...] = (np.bool_, np.uint8, np.int16, np.float32, np.int64, np.complex128)
"""One type for every number of bytes, and two of one byte."""

every_size = pytest.mark.parametrize("dtype", SIZES)


def numbers(dtype: DTypeLike, *shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(0, 120, shape).astype(dtype)


def ints(*entries: int) -> Array:
    return np.array(entries, np.int32)


@every_size
@pytest.mark.parametrize(
    "shape",
    [
        (),
        (5,),
        (0, 3),
        (33, 40),
        (17, 16),
        (2, 20, 17),
        (2, 17, 3, 20),
        (2, 3, 4, 2, 3),
        (1, 3, 1, 4),
    ],
)
def test_every_order_of_axes(dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    for order in permutations(range(len(shape))):
        check_compiled(Transpose, [numbers(dtype, *shape), ints(*order)], (1,))


@pytest.mark.parametrize("count", [*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 200])
def test_runs_of_any_length(count: int) -> None:
    check_compiled(Pack, [numbers(np.uint8, count), numbers(np.uint8, count)[::-1]], axis=0)


PADDINGS = (
    ((3,), ((1, 2),)),
    ((2, 3), ((0, 0), (1, 0))),
    ((1, 5, 6, 7), ((0, 0), (1, 1), (2, 0), (0, 0))),
    ((2, 3, 4), ((1, 2), (3, 4), (5, 6))),
    ((2, 0, 4), ((1, 2), (3, 4), (5, 6))),
    ((1, 8, 8, 16), ((0, 0), (0, 0), (0, 0), (8, 8))),
    ((2, 2), ((0, 0), (0, 0))),
)


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32, np.int64])
@pytest.mark.parametrize(("shape", "paddings"), PADDINGS)
def test_padding(dtype: DTypeLike, shape: tuple[int, ...], paddings: Any) -> None:
    borders = np.array(paddings, np.int32)
    check_compiled(Pad, [numbers(dtype, *shape), borders], (1,))
    check_compiled(PadV2, [numbers(dtype, *shape), borders, np.array([7], dtype)], (1, 2))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_joining_and_taking_apart(axis: int) -> None:
    lengths = [
        [n + (k if i == axis % 3 else 0) for i, n in enumerate((3, 4, 5))] for k in (0, 2, 1)
    ]
    check_compiled(Concatenation, [numbers(np.float32, *shape) for shape in lengths], axis=axis)
    for dtype in SIZES:
        check_compiled(Pack, [numbers(dtype, 3, 4) + n for n in range(3)], axis=axis)
        check_compiled(Unpack, [numbers(dtype, 3, 3, 3)], axis=axis, num=3)
        check_compiled(Split, [ints(axis), numbers(dtype, 4, 6, 8)], (0,), num_splits=2)


@every_size
def test_scalars_side_by_side(dtype: DTypeLike) -> None:
    check_compiled(Pack, [numbers(dtype), numbers(dtype)], axis=0)
    check_compiled(Unpack, [numbers(dtype, 3)], axis=0, num=3)


@every_size
def test_slices(dtype: DTypeLike) -> None:
    x = numbers(dtype, 5, 6, 7)
    check_compiled(Slice, [x, ints(1, 2, 3), ints(2, -1, 3)], (1, 2))
    check_compiled(Slice, [x, ints(1, 2, 3), ints(2, 0, 3)], (1, 2))
    taken = [ints(4, 0, -1), ints(0, 6, 0), ints(-2, 3, -1)]
    check_compiled(StridedSlice, [x, *taken], (1, 2, 3))
    check_compiled(StridedSlice, [x, *taken], (1, 2, 3), begin_mask=7, end_mask=7, new_axis_mask=2)
    check_compiled(
        StridedSlice, [x, ints(4, 1), ints(0, 6), ints(1, 3)], (1, 2, 3), shrink_axis_mask=1
    )
    one = [numbers(dtype, 5), ints(4), ints(0), ints(1)]
    check_compiled(StridedSlice, one, (1, 2, 3), shrink_axis_mask=1)


@every_size
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_picking_by_constant_indices(dtype: DTypeLike, axis: int) -> None:
    x = numbers(dtype, 5, 6, 7)
    for indices in (np.array([[3, 0], [4, 4]]), np.array(2), np.zeros((0,), np.int64)):
        check_compiled(Gather, [x, indices.astype(np.int32)], (1,), axis=axis)


def test_gather_picks_by_many_indices_and_leaves_wrong_ones_to_the_reference() -> None:
    x = numbers(np.float32, 5, 6)
    check_compiled(Gather, [x, np.arange(MOST_PICKED + 1, dtype=np.int32) % 5], (1,))
    for wrong in (ints(1, 5), ints(-1)):
        assert declines(Gather, [x, wrong], (1,))


ROW = numbers(np.float32, 4)
COMPUTED: tuple[tuple[type[Op], list[Array], list[int]], ...] = (
    (Transpose, [numbers(np.float32, 4, 6), ints(1, 0)], [1]),
    (Slice, [ROW, ints(1), ints(2)], [1, 2]),
    (StridedSlice, [ROW, ints(1), ints(2), ints(1)], [1, 2, 3]),
    (Split, [ints(0), ROW], [0]),
    (Pad, [ROW, np.ones((1, 2), np.int32)], [1]),
    (PadV2, [ROW, np.ones((1, 2), np.int32), np.ones(1, np.float32)], [1, 2]),
)


@pytest.mark.parametrize(("cls", "operands", "constant"), COMPUTED)
def test_computed_places_are_left_to_the_reference(
    cls: type[Op], operands: list[Array], constant: list[int]
) -> None:
    attributes = {"num_splits": 1} if cls is Split else {}
    for computed in constant:
        assert declines_computed(cls, operands, constant, computed, **attributes)


def test_concatenation_leaves_activations_to_the_reference() -> None:
    pair = [numbers(np.float32, 2, 3)] * 2
    assert declines(Concatenation, pair, axis=0, activation=ActivationFunctionType.RELU)


def test_large_transposes_are_those_of_litert() -> None:
    x = numbers(np.float32, 3, 130, 70)
    content = to_bytes(one_op(Transpose, [x, ints(0, 2, 1)], (1,)), "tflite")
    result = run_compiled(Transpose, [x, ints(0, 2, 1)], (1,))[0]
    np.testing.assert_array_equal(result, litert(content, [x], "AUTO")[0])
