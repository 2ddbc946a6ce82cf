"""NON_MAX_SUPPRESSION_V4 and V5 against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, LucioleError, ShapeError, TensorType
from luciole.ir.ops.non_max_suppression import (
    NonMaxSuppression,
    NonMaxSuppressionV4,
    NonMaxSuppressionV5,
)
from tests.support import run_litert, run_reference

BOTH = pytest.mark.parametrize("cls", [NonMaxSuppressionV4, NonMaxSuppressionV5])


def boxes(count: int, seed: int = 5) -> tuple[Array, Array]:
    """Overlapping boxes, some with their corners the other way round, and scores."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 1, (count, 2))
    second = first + rng.uniform(0.05, 0.5, (count, 2)) * rng.choice([-1, 1], (count, 2))
    scores = rng.permutation(count) / max(count, 1)
    return np.concatenate([first, second], 1).astype(np.float32), scores.astype(np.float32)


def operands(
    cls: type[NonMaxSuppression],
    most: int,
    overlap: float = 0.4,
    score: float = 0.1,
    sigma: float = 0.0,
    count: int = 60,
) -> list[Any]:
    numbers = [np.float32(overlap), np.float32(score)]
    if cls is NonMaxSuppressionV5:
        numbers.append(np.float32(sigma))
    return [*boxes(count), np.array(most, np.int32), *numbers]


def check(cls: type[NonMaxSuppression], given: list[Any], constant: tuple[int, ...] = (2,)) -> int:
    """The number of boxes taken; everything as in LiteRT."""
    ours, theirs = (run(cls, given, constant) for run in (run_reference, run_litert))
    assert len(ours) == len(theirs) == len(cls.result_names)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return int(ours[-1])


@BOTH
@pytest.mark.parametrize("most", [0, 1, 7, 60, 80])
@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.5, 1.0])
def test_boxes_taken_are_those_of_litert(
    cls: type[NonMaxSuppression], most: int, overlap: float
) -> None:
    assert check(cls, operands(cls, most, overlap)) <= most


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.5, 10.0])
@pytest.mark.parametrize("overlap", [0.3, 1.0])
@pytest.mark.parametrize("score", [0.0, 0.2])
def test_scores_fall_like_in_litert(sigma: float, overlap: float, score: float) -> None:
    assert check(NonMaxSuppressionV5, operands(NonMaxSuppressionV5, 50, overlap, score, sigma)) > 3


@BOTH
def test_the_number_may_be_computed(cls: type[NonMaxSuppression]) -> None:
    assert check(cls, operands(cls, 5), ()) == 5


@BOTH
def test_no_box_is_good_enough(cls: type[NonMaxSuppression]) -> None:
    assert check(cls, operands(cls, 5, score=2.0)) == 0


@BOTH
def test_boxes_without_an_area_are_taken_like_in_litert(cls: type[NonMaxSuppression]) -> None:
    given = operands(cls, 8, count=4)
    given[0][1:3, 2:] = given[0][1:3, :2]
    check(cls, given)


@BOTH
@pytest.mark.parametrize("sigma", [0.0, 1.0])
@pytest.mark.parametrize("corners", [[0], [1], [2], [3], [0, 1, 2, 3]])
@pytest.mark.parametrize("place", [0, 1])
def test_boxes_with_nan_are_taken_like_in_litert(
    cls: type[NonMaxSuppression], sigma: float, corners: list[int], place: int
) -> None:
    given = operands(cls, 6, 0.5, 0.0, sigma, count=2)
    given[0][:] = 0, 0, 1, 1
    given[0][place, corners] = np.nan
    given[1][:] = 0.9, 0.8
    check(cls, given)


@BOTH
def test_of_equal_scores_the_first_box_is_taken(cls: type[NonMaxSuppression]) -> None:
    given = operands(cls, 3, count=3)
    given[:2] = np.array([[0, 0, 1, 1], [5, 5, 6, 6], [5, 5, 6, 6]], np.float32), np.ones(3, "f4")
    places, *_, count = run_reference(cls, given)
    assert (places.tolist(), int(count)) == ([0, 1, 0], 2)


@BOTH
def test_non_max_suppression_keeps_unknown_dimensions(cls: type[NonMaxSuppression]) -> None:
    graph = Graph()
    shapes = [(None, 4), (None,), (), (), (), ()][: len(cls.operand_fields())]
    values = [graph.add_input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    values[2].dtype = TensorType.INT32
    assert cls(*values).infer_shape() == (*[(None,)] * (len(cls.result_names) - 1), ())


@BOTH
@pytest.mark.parametrize(
    ("slot", "array", "message"),
    [
        (0, np.ones((60, 5), np.float32), "numbers of a box: boxes has 5, a box has 4"),
        (0, np.ones((4,), np.float32), r"boxes has shape \[4\], rank 2 is needed"),
        (1, np.ones(59, np.float32), "number: scores has 59, boxes has 60"),
        (2, np.array(-1, np.int32), "max_output_size is -1, it must be at least 0"),
        (3, np.ones(2, np.float32), "elements: iou_threshold has 2, a number has 1"),
    ],
)
@pytest.mark.parametrize("constant", [(2,), ()])
def test_non_max_suppression_refuses_operands_that_do_not_fit(
    cls: type[NonMaxSuppression], slot: int, array: Array, message: str, constant: tuple[int, ...]
) -> None:
    given = operands(cls, 5)
    given[slot] = array
    with pytest.raises(ShapeError, match=message):
        run_reference(cls, given, constant)


@BOTH
def test_non_max_suppression_refuses_a_computed_number_that_takes_too_much_memory(
    cls: type[NonMaxSuppression],
) -> None:
    with pytest.raises(LucioleError, match="are allowed where the shape is computed"):
        run_reference(cls, operands(cls, 2**31 - 1))


def test_non_max_suppression_refuses_a_sigma_below_0() -> None:
    with pytest.raises(LucioleError, match=r"soft_nms_sigma is -1.0, it must be at least 0"):
        run_reference(NonMaxSuppressionV5, operands(NonMaxSuppressionV5, 5, sigma=-1.0))
