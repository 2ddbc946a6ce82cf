"""Operator classes are found in ``luciole.ir.ops`` by their names."""

from __future__ import annotations

import pytest

import luciole.ir.ops
from luciole.ir import OPS, UnknownOp


def test_every_class_is_an_attribute_of_the_package() -> None:
    own = [op for op in OPS.values() if op.__module__.startswith("luciole.ir.ops.")]
    assert len(own) > 150
    assert all(getattr(luciole.ir.ops, op.__name__) is op for op in own)
    assert luciole.ir.ops.LevelsDecode.__name__ == "LevelsDecode"


def test_the_package_refuses_a_class_that_there_is_not() -> None:
    with pytest.raises(AttributeError, match="no operator class 'Mull'"):
        _ = luciole.ir.ops.Mull
    assert UnknownOp not in OPS.values()
