"""Operators in C that move or repeat elements: exactly NumPy's views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Op
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unpack import Unpack
from tests.compiler_support import built, needs_compiler, program_of
from tests.support import one_op

pytestmark = needs_compiler

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


CASES: dict[str, tuple[type[Op], list[Array], list[Array], dict[str, Any]]] = {
    "slice": (Slice, [X, ints(1, 0, 2), ints(1, -1, 2)], [X[1:, :, 2:4]], {}),
    "strided": (StridedSlice, [X, ints(1, 2, 3), ints(-3, 0, 0), ints(-1, -1, -2)], [], {}),
    "transposed": (Transpose, [X, ints(2, 0, 1)], [X.transpose(2, 0, 1)], {}),
    "reversed": (ReverseV2, [X, ints(1)], [X[:, ::-1]], {}),
    "split": (Split, [ints(-1), X], np.split(X, 2, -1), {"num_splits": 2}),
    "split unevenly": (
        *(SplitV, [X, ints(1, -1), ints(1)], [X[:, :1], X[:, 1:]]),
        {"num_splits": 2},
    ),
    "unpacked": (Unpack, [X], [X[:, 0], X[:, 1], X[:, 2]], {"num": 3, "axis": 1}),
}
CASES["strided"][2].append(X[1::-1, 2:0:-1, 3:0:-2])


@pytest.mark.parametrize("name", CASES)
def test_elements_come_where_numpy_has_them(name: str, tmp_path: Path) -> None:
    cls, operands, wanted, attributes = CASES[name]
    constant = [place for place, array in enumerate(operands) if array is not X]
    model = one_op(cls, operands, constant, **attributes)
    found = built(program_of(model), tmp_path).run({model.graph.inputs[0].name: X})
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tensors_side_by_side(axis: int, tmp_path: Path) -> None:
    model = one_op(Pack, [X, X + 9], values_count=2, axis=axis)
    names = [value.name for value in model.graph.inputs]
    (found,) = built(program_of(model), tmp_path).run({names[0]: X, names[1]: X + 9})
    np.testing.assert_array_equal(found, np.stack([X, X + 9], axis))


@pytest.mark.parametrize("cls", [Add, Sub, Mul, Maximum, Minimum])
@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (1, 3, 4)])
def test_operands_are_repeated(cls: type[Op], shape: tuple[int, ...], tmp_path: Path) -> None:
    functions = {Add: np.add, Sub: np.subtract, Mul: np.multiply}
    functions |= {Maximum: np.maximum, Minimum: np.minimum}
    other = np.random.default_rng(0).normal(10, 5, shape).astype(np.float32)
    model = one_op(cls, [other, X], (0,))
    (found,) = built(program_of(model), tmp_path).run({model.graph.inputs[0].name: X})
    np.testing.assert_array_equal(found, functions[cls](other, X))
