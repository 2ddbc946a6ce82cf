"""What numba makes of our functions."""

from __future__ import annotations

from typing import Any, cast

from luciole.kernels.jit import emits
from luciole.kernels.jit.compiling import inlined, separate
from luciole.kernels.jit.machine_code import machine_code

I64 = emits.types.int64


@inlined
def _double(x: int) -> int:
    return x + x


@separate
def _sum(count: int) -> int:
    total = 0
    for i in range(count):
        total += _double(i)
    return total


def _function(count: int) -> int:
    return _sum(count) + _double(count)


def test_helpers_are_bitcode_without_machine_code() -> None:
    _, code = machine_code(_function, I64(I64))
    assert code.startswith(b"\x7fELF")
    for helper in (_double, _sum):
        (made,) = cast(Any, helper).overloads.values()
        names = [function.name for function in made.library.get_defined_functions()]
        assert made.fndesc.llvm_func_name in names
        assert [made.library.get_pointer_to_function(name) for name in names] == [0] * len(names)
