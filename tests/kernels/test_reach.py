"""Addresses of tensors are given only for bytes that the tensor has, and in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import luciole.kernels
from luciole.ir import Array
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import NEVER, Moves, among, reach, turns

FLOATS = np.zeros((3, 5), np.float32)
BYTES = FLOATS.nbytes


def at(array: Array) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize(
    ("size", "loops", "begin"),
    [
        (BYTES, (), 0),
        (4, (), BYTES - 4),
        (20, (turns(3, 20),), 0),
        (4, (turns(3, 20), turns(5, 4)), 0),
        (4, (turns(3, -20), turns(5, 4)), 40),
        (8, (among(np.array([[0, 12], [52, 4]])),), 0),
        (4, (turns(1, 1 << 40), turns(7, 0)), BYTES - 4),
    ],
)
def test_an_address_is_given_for_all_bytes_of_a_tensor_and_refuses_one_more(
    size: int, loops: tuple[Moves, ...], begin: int
) -> None:
    assert reach(FLOATS, size, *loops, begin=begin) == at(FLOATS) + begin
    ends_at = begin + sum(moves.most for moves in loops) + size
    assert ends_at == BYTES
    said = rf"would touch bytes -?\d+ to {BYTES + 1} of a tensor, which has bytes 0 to {BYTES}"
    with pytest.raises(ExecutionError, match=said):
        reach(FLOATS, size + 1, *loops, begin=begin)


def test_an_address_refuses_bytes_before_a_tensor() -> None:
    assert reach(FLOATS, 4, turns(5, -4), begin=16) == at(FLOATS) + 16
    with pytest.raises(ExecutionError, match="would touch bytes -4 to 16 of a tensor"):
        reach(FLOATS, 4, turns(5, -4), begin=12)


def test_a_view_is_as_large_as_what_lies_between_its_ends() -> None:
    turned = FLOATS[::-1, 1:4]
    assert reach(turned, 12, turns(3, -20)) == at(FLOATS) + 44
    with pytest.raises(ExecutionError, match="bytes -40 to 16 of a tensor, which has bytes -40 to"):
        reach(turned, 16, turns(3, -20))
    repeated = np.broadcast_to(FLOATS[:1, :1], (1000, 1000))
    assert reach(repeated, 4, turns(1000, 0)) == at(FLOATS)
    with pytest.raises(ExecutionError, match="which has bytes 0 to 4"):
        reach(repeated, 4, turns(2, 4))


@pytest.mark.parametrize("never", [turns(0, 4), turns(-1, 4), among(np.zeros((0, 2)))])
def test_what_never_runs_touches_nothing(never: Moves) -> None:
    assert never == NEVER
    nothing = np.zeros((0, 7), np.float32)
    assert reach(nothing, 28, never) == at(nothing)
    assert reach(nothing, 0, begin=64) == at(nothing) + 64
    with pytest.raises(ExecutionError, match="which has bytes 0 to 0"):
        reach(nothing, 1)


# ------------------------------------------------------------------------- nobody goes another way
KERNELS = Path(luciole.kernels.__path__[0])
ADDRESSES = {"ctypes", "__array_interface__", "__array_struct__"}
GIVE_ADDRESSES = {"core/allocation.py", "core/memory.py"}


def taken_in(source: str) -> Iterator[str]:
    """Attributes that give an array's address."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ADDRESSES:
            yield node.attr


def test_the_scanner_sees_addresses() -> None:
    found = set(taken_in("f(x.ctypes.data)\ny = x.view().__array_interface__"))
    assert found == {"ctypes", "__array_interface__"}
    assert set(taken_in("ctypes = x.data")) == set()


def test_kernels_get_addresses_from_memory_only() -> None:
    """What compiles and calls kernels has addresses of its own."""
    found = {
        str(path.relative_to(KERNELS))
        for path in KERNELS.rglob("*.py")
        if path.parts[len(KERNELS.parts)] != "jit" and any(taken_in(path.read_text()))
    }
    assert found == GIVE_ADDRESSES
