"""Operators are coloured by what they say of themselves."""

from __future__ import annotations

import pytest

from luciole.drawing import palette
from luciole.ir import CUSTOM_OPS, OPS
from tests.lone_operators import alone

BY_NAME = {cls.__name__: cls for cls in [*OPS.values(), *CUSTOM_OPS.values()]}


def category_of(name: str) -> str:
    (op,) = alone(BY_NAME[name], {}, optional=False).graph.ops
    return palette.category(op)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("If", "control"),
        ("While", "control"),
        ("GRU", "layer"),
        ("BatchMatMul", "layer"),
        ("Conv2D", "layer"),
        ("MaxPool2D", "pool"),
        ("Mean", "reduce"),
        ("Less", "arithmetic"),
        ("Relu", "activation"),
        ("Dequantize", "quantization"),
        ("Transpose", "shape"),
        ("MaxUnpooling2D", "other"),
    ],
)
def test_operators_have_the_category_of_what_they_do(name: str, wanted: str) -> None:
    assert category_of(name) == wanted


def test_every_file_that_has_a_category_is_one_of_operators() -> None:
    files = {cls.__module__.rpartition(".")[2] for cls in BY_NAME.values()}
    assert palette._BY_FILE.keys() <= files


def test_no_two_categories_share_a_colour() -> None:
    assert len({*palette.CATEGORIES.values()}) == len(palette.CATEGORIES)


def test_every_category_has_a_colour() -> None:
    assert {*palette._BY_FILE.values(), "layer", "control", "shape", "other"} <= {
        *palette.CATEGORIES
    }
