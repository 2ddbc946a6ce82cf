"""Compiled comparisons, logic, choices and reductions of truth values against the reference, on all
kinds of shapes.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Op
from luciole.ir.ops import comparisons
from luciole.ir.ops.logical import LogicalAnd, LogicalNot, LogicalOr
from luciole.ir.ops.reduce import ReduceAll, ReduceAny, ReduceMax, Reduction
from luciole.ir.ops.select import Select, SelectV2
from luciole.kernels.core import registry
from tests.native_support import check_compiled
from tests.support import one_op

pytestmark = pytest.mark.filterwarnings("error")

PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((1,), (37,)),
    ((3, 37), (37,)),
    ((3, 1), (3, 70)),
    ((2, 3, 4), (2, 1, 4)),
    ((2, 1, 4, 1), (3, 1, 65)),
    ((2, 0, 4), (1, 1, 4)),
]
ALIKE = [PAIRS[2], PAIRS[4]]
"""Those of which both operands go on within a line. Kernels are compiled for that: functions that
differ elsewhere alone need no others.
"""

COMPARED: list[tuple[type[Op], Any]] = [
    *((cls, np.float32) for cls in comparisons.COMPARISONS),
    *((cls, np.int32) for cls in comparisons.COMPARISONS[::2]),
    *((cls, np.int64) for cls in comparisons.COMPARISONS[1::2]),
]
Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 1) -> Array:
    """Few different numbers, so that many are equal; of floats, NaN and zeros of both signs too."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.choice([0.0, -0.0, 1.5, np.nan, np.inf, -2.0], shape).astype(dtype)
    return random.integers(0, 2 if dtype == np.bool_ else 3, shape).astype(dtype)


@pytest.mark.parametrize(
    ("cls", "dtype", "shapes"),
    [
        *((comparisons.Less, np.float32, shapes) for shapes in PAIRS),
        *((*compared, shapes) for compared in COMPARED for shapes in ALIKE),
    ],
)
def test_comparisons(cls: type[Op], shapes: Shapes, dtype: Any) -> None:
    check_compiled(cls, [numbers(shape, dtype, n) for n, shape in enumerate(shapes)])
    check_compiled(cls, [numbers(shape, dtype, n) for n, shape in enumerate(reversed(shapes))])


@pytest.mark.parametrize(
    ("cls", "shapes"),
    [
        *((LogicalAnd, shapes) for shapes in PAIRS),
        *product([comparisons.Equal, comparisons.NotEqual, LogicalOr], ALIKE),
    ],
)
def test_truths(cls: type[Op], shapes: Shapes) -> None:
    check_compiled(cls, [numbers(shape, np.bool_, n) for n, shape in enumerate(shapes)])


@pytest.mark.parametrize("shape", [(), (3,), (5, 70), (0, 2)])
def test_the_opposite(shape: tuple[int, ...]) -> None:
    check_compiled(LogicalNot, [numbers(shape, np.bool_)])


@pytest.mark.parametrize(
    ("shapes", "dtype"),
    [
        *((shapes, np.float32) for shapes in PAIRS),
        *product(ALIKE[:1], [np.int8, np.int16, np.int64, np.bool_]),
    ],
)
def test_choices_of_stretched_elements(shapes: Shapes, dtype: Any) -> None:
    x, y = (numbers(shape, dtype, n) for n, shape in enumerate(shapes))
    for condition in {(), *shapes, np.broadcast_shapes(*shapes)}:
        asked = numbers(condition, np.bool_, 5)
        check_compiled(SelectV2, [asked, x, y])
        check_compiled(SelectV2, [asked, y, x])


@pytest.mark.parametrize("condition", [(), (3,), (3, 4, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_choices_by_a_first_axis(condition: tuple[int, ...], dtype: Any) -> None:
    x, y = (numbers((3, 4, 20), dtype, n) for n in range(2))
    check_compiled(Select, [numbers(condition, np.bool_, 5), x, y])


def test_choices_of_16_bytes_are_left_to_the_reference() -> None:
    x = np.ones((2, 3), np.complex128)
    model = one_op(SelectV2, [numbers((2, 3), np.bool_), x, x])
    assert registry.find_native(model.graph.ops[0]) is None


@pytest.mark.parametrize("cls", [ReduceAny, ReduceAll, ReduceMax])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((5,), [0]),
        ((3, 70), [1]),
        ((3, 70), [0]),
        ((3, 4, 5), [1]),
        ((3, 4, 5), [0, 2]),
        ((2, 3, 4, 5), [1, 3]),
        ((3, 4, 5), []),
        ((3, 0), [1]),
        ((0, 3), [1]),
    ],
)
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_reductions(
    cls: type[Reduction], shape: tuple[int, ...], axes: list[int], share: float
) -> None:
    x = np.random.default_rng(3).uniform(0, 1, shape) < share
    check_compiled(cls, [x, np.array(axes, np.int32)], (1,))
