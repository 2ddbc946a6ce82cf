"""REAL, IMAG and COMPLEX_ABS against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Op, ShapeError
from luciole.ir.ops.complex_parts import ComplexAbs, Imag, Real
from tests.native_support import check_compiled
from tests.support import run_litert, run_reference

X = np.array([[3 + 4j, -1j, 1e30 + 1e30j], [complex(np.nan, 1), complex(-np.inf, 0), 0]])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("cls", [Real, Imag, ComplexAbs])
def test_parts_are_those_of_litert(cls: type[Op], dtype: DTypeLike) -> None:
    x = X.astype(dtype)
    ours, theirs = run_reference(cls, [x])[0], run_litert(cls, [x])[0]
    np.testing.assert_allclose(ours, theirs, rtol=3e-7, strict=True)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("cls", [Real, Imag])
@pytest.mark.parametrize("shape", [(), (5,), (3, 37), (0, 2)])
def test_compiled_parts_are_those_of_the_reference(
    cls: type[Op], dtype: DTypeLike, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(6)
    check_compiled(cls, [(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)])


@pytest.mark.parametrize("cls", [Real, Imag, ComplexAbs])
def test_parts_refuses_real_numbers(cls: type[Op]) -> None:
    with pytest.raises(ShapeError, match="x is FLOAT32, COMPLEX64 or COMPLEX128 is needed"):
        run_reference(cls, [np.ones(2, np.float32)])
