"""Instructions of kernels: what a function that writes LLVM's code is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import pytest
from llvmlite import ir
from numba.core.errors import TypingError

from luciole.kernels.jit.compiling import compiled
from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Int64,
    Kind,
    Literal,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.scalars import I64, number
from luciole.kernels.jit.vector.bits import float_tile
from luciole.kernels.jit.vector.vectors import Vectors


@emits
def times(builder: Builder, x: Int64, factor: Literal) -> Int64:
    """x times a number."""
    return int_of(builder.mul(x, ir.Constant(I64, factor)))


def int_of(value: Value) -> int:
    """LLVM's value as what a kernel takes it for."""
    found: int = value
    return found


@emits
def put(builder: Builder, to: Address, x: Int64) -> None:
    """Write x."""
    builder.store(x, builder.inttoptr(to, I64.as_pointer()))


def _narrow(_: Kind, bits: int) -> Kind:
    found: Kind = types.Integer.from_bitwidth(bits)
    return found


@emits
def cut(builder: Builder, x: Int64, bits: Literal) -> Annotated[int, _narrow]:
    """x in fewer bits."""
    return int_of(builder.trunc(x, ir.IntType(bits)))


@emits
def vectors_of(builder: Builder, tile: Vectors) -> Int64:
    """How many vectors a tile has."""
    return int_of(ir.Constant(I64, tile.kind.count))


def test_a_literal_is_a_number_when_code_is_written() -> None:
    def tripled(x: int) -> int:
        return times(x, 3)

    assert compiled(tripled, 1)(14) == 42


def test_an_operand_is_converted_to_the_type_that_its_annotation_names() -> None:
    def rounded(x: int) -> int:
        return times(np.float64(x) + 0.75, 2)  # type: ignore[arg-type]  # converted: that is asked

    assert compiled(rounded, 1)(10) == 20


def test_an_operand_comes_with_its_type() -> None:
    def six() -> int:
        return vectors_of(float_tile(2, 3))

    assert compiled(six, 0)() == 6


def test_what_returns_nothing_is_called_for_what_it_does() -> None:
    place = np.zeros(1, np.int64)

    def change(to: int, x: int) -> int:
        put(to, x)
        return number(to) + 1

    assert compiled(change, 2)(place.ctypes.data, 41) == 42
    assert place[0] == 41


@pytest.mark.parametrize(("bits", "found"), [(8, -1), (16, 0xFF)])
def test_the_type_of_a_result_may_follow_from_a_literal(bits: int, found: int) -> None:
    def narrow(x: int) -> int:
        return cut(x, 8)

    def wider(x: int) -> int:
        return cut(x, 16)

    assert compiled(narrow if bits == 8 else wider, 1)(0xFF) == found


def test_a_literal_refuses_a_number_that_is_found_when_a_kernel_runs() -> None:
    def unknown(x: int, y: int) -> int:
        return times(x, y)

    refused(unknown, 2, "times: factor is of type int64: a number known when a kernel is compiled")


def test_an_operand_refuses_a_type_of_another_class() -> None:
    def no_tile(x: int) -> int:
        return vectors_of(x)  # type: ignore[arg-type]  # that is refused

    refused(no_tile, 1, "vectors_of: tile is of type int64: a value of a Tile is possible")


def refused(function: Callable[..., int], arguments: int, message: str) -> None:
    with pytest.raises(TypingError, match=message):
        compiled(function, arguments)
