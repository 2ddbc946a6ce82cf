"""STABLEHLO_PAD against LiteRT."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Graph, ShapeError
from luciole.ir.errors import FormatError
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.stablehlo_pad import StablehloPad
from tests.litert_support import check_same, counted
from tests.support import one_op, run_reference


def paddings(low: Any, high: Any, interior: Any) -> dict[str, Any]:
    return {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}


@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [
        ((0, 0), (0, 0), (0, 0)),
        ((1, 2), (3, 0), (0, 0)),
        ((0, 0), (0, 0), (2, 1)),
        ((1, 0), (0, 2), (1, 3)),
        ((-1, 1), (1, -1), (0, 0)),
        ((-1, -2), (0, -1), (2, 1)),
        ((-2, -3), (4, 5), (1, 2)),
        ((4, -1), (-3, 2), (1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.int64])
def test_results_are_those_of_litert(low: Any, high: Any, interior: Any, dtype: Any) -> None:
    given = [counted(3, 4, dtype=dtype), np.array(-9, dtype)]
    check_same(StablehloPad, given, resolver="AUTO", **paddings(low, high, interior))


def test_all_paddings_of_an_axis_are_as_specified() -> None:
    """Elements stand apart first, then the edges grow or shrink."""
    x = np.arange(1, 4, dtype=np.int32)
    for low, high, interior in itertools.product(range(-4, 3), range(-4, 3), range(3)):
        apart = np.zeros(3 + 2 * interior, np.int32)
        apart[:: interior + 1] = x
        whole = np.pad(apart, (max(low, 0), max(high, 0)))
        wanted = whole[max(-low, 0) : len(whole) - max(-high, 0)]
        if low + high + len(apart) < 0:
            continue
        given = [x, np.array(0, np.int32)]
        (found,) = run_reference(StablehloPad, given, **paddings((low,), (high,), (interior,)))
        np.testing.assert_array_equal(found, wanted)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, value = graph.add_input("x", (None, 3)), graph.add_input("v", ())
    op = StablehloPad(x, value, **paddings((1, 1), (0, 0), (0, 1)))
    assert op.infer_shape() == (None, 6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (paddings((1,), (0, 0), (0, 0)), "paddings are for 1, 2 and 2 axes, input has 2"),
        (paddings((0, 0), (0, 0), (0, -1)), "interior_padding is -1, nothing below 0"),
        (paddings((-2, 0), (-2, 0), (0, 0)), "4 elements are taken off 3"),
    ],
)
def test_stablehlo_pad_refuses_other_paddings(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(StablehloPad, [counted(3, 4), np.array(0, np.float32)], **given)


def test_numbers_of_64_bits_are_written_and_others_are_refused() -> None:
    given = [counted(3, 4), np.array(0, np.float32)]
    wide = paddings((0, 2**40), (0, -(2**40)), (0, 0))
    op = from_bytes(to_bytes(one_op(StablehloPad, given, **wide))).graph.ops[0]
    assert op.attributes() == wide
    reshape = one_op(Reshape, [counted(3, 4)], new_shape=(12,))
    (changed,) = reshape.graph.ops
    assert isinstance(changed, Reshape)
    changed.new_shape = (2**40,)
    with pytest.raises(FormatError, match="new_shape has numbers that its type int does not hold"):
        to_bytes(reshape, check=False)
