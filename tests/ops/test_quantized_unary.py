"""Unary element-wise operators on quantized tensors: every integer against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import activations, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from tests.native_support import check_compiled
from tests.support import Affine, litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
GRIDS = (
    (0.05, 3, 0.02, -7),
    (0.031, -128, 1 / 256, -128),
    (0.4, 20, 0.31, 100),
    (1e-3, 0, 2e-3, 5),
)
"""Scale and zero point of the operand and of the result, for INT8."""

FUNCTIONS: tuple[tuple[type[Op], dict[str, Any], tuple[TensorType, ...]], ...] = (
    (activations.Tanh, {}, (INT8, UINT8)),
    (activations.HardSwish, {}, (INT8, UINT8)),
    (activations.Relu, {}, (INT8, UINT8, INT16)),
    (activations.Relu6, {}, (INT8, UINT8, INT16)),
    (activations.ReluN1To1, {}, (INT8, UINT8)),
    (activations.Relu0To1, {}, (INT8, UINT8)),
    (LeakyRelu, {"alpha": 0.1}, (INT8, UINT8, INT16)),
    (LeakyRelu, {"alpha": 1.7}, (INT8, UINT8, INT16)),
    (Gelu, {}, (INT8, UINT8, INT16)),
    (Gelu, {"approximate": True}, (INT8, UINT8, INT16)),
    (elementwise_unary.Abs, {}, (INT8, INT16)),
    (elementwise_unary.Exp, {}, (INT8, INT16)),
    (elementwise_unary.Log, {}, (INT8, INT16)),
)
CASES = [(cls, kw, dtype) for cls, kw, types in FUNCTIONS for dtype in types]


def every(dtype: TensorType) -> Array:
    """All integers of a type."""
    limits = np.iinfo(NUMPY[dtype])
    return np.arange(limits.min, limits.max + 1).astype(limits.dtype)


def affine(dtype: TensorType, *grid: float) -> dict[str, Any]:
    """A row of ``GRIDS`` for an element type."""
    middle = {INT8: 0, UINT8: 128, INT16: None}[dtype]
    fine = 1 if middle is not None else 1 / 64
    points = [0 if middle is None else int(p) + middle for p in grid[1::2]]
    x, y = (Affine(s * fine, p) for s, p in zip(grid[::2], points, strict=True))
    return {"affine": [x], "results": [y]}


def same(cls: type[Op], x: Array, **given: Any) -> None:
    """The reference gives what LiteRT gives."""
    ours, theirs = run_reference(cls, [x], **given)[0], run_litert(cls, [x], **given)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("cls", "attributes", "dtype"), CASES)
def test_functions_of_every_integer_are_those_of_litert(
    cls: type[Op], attributes: dict[str, Any], dtype: TensorType, grid: Any
) -> None:
    same(cls, every(dtype), **attributes, **affine(dtype, *grid))


APPROXIMATE = {"approximate": True}
TIES: tuple[tuple[type[Op], dict[str, Any], TensorType, Affine, Affine], ...] = (
    (Gelu, {}, INT8, Affine(2.0**-4, -8), Affine(2.0**-2, -105)),
    (Gelu, {}, UINT8, Affine(2.0**-4, 31), Affine(2.0**-2, 4)),
    (Gelu, {}, INT16, Affine(2.0**-11), Affine(2.0**-11)),
    (Gelu, APPROXIMATE, INT8, Affine(0.0373, 17), Affine(0.0232, -76)),
    (Gelu, APPROXIMATE, INT16, Affine(0.0021), Affine(0.0003)),
    (elementwise_unary.Rsqrt, {}, INT16, Affine(0.0004), Affine(0.0002)),
)
"""Where a result lies so near the middle of two integers that the last bit of each step decides."""


@pytest.mark.parametrize(("cls", "attributes", "dtype", "operand", "result"), TIES)
def test_ties_are_decided_as_in_litert(
    cls: type[Op], attributes: dict[str, Any], dtype: TensorType, operand: Affine, result: Affine
) -> None:
    x, given = every(dtype), {"affine": [operand], "results": [result], **attributes}
    same(cls, x[x >= 0] if cls is elementwise_unary.Rsqrt else x, **given)
    if dtype != INT16:
        check_compiled(cls, [x], **given)


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("scale", [0.03, 0.1, 1.0, 2.0**-7, 2.0**-8, 2.0**-9, 2.0**-10])
def test_logistic_is_that_of_litert(dtype: TensorType, scale: float) -> None:
    lowest = np.iinfo(NUMPY[dtype]).min
    x, operand, result = every(dtype), Affine(scale, lowest + 100), Affine(1 / 256, lowest)
    same(activations.Logistic, x, affine=[operand], results=[result])
    check_compiled(activations.Logistic, [x], affine=[operand], results=[result])


@pytest.mark.parametrize("cls", [activations.Logistic, activations.Tanh])
@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 2.0**-13, 3e-4, 1e-5, 0.01])
def test_sigmoids_of_16_bits_are_those_of_litert(cls: type[Op], scale: float) -> None:
    same(cls, every(INT16), affine=[Affine(scale)], results=[Affine(2.0**-15)])


@pytest.mark.parametrize("grid", GRIDS)
def test_elu_is_that_of_litert(grid: Any) -> None:
    x, given = every(INT8), affine(INT8, *grid)
    content = to_bytes(one_op(activations.Elu, [x], **given), "tflite")
    theirs = litert(content, [x], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")[0]
    np.testing.assert_array_equal(run_reference(activations.Elu, [x], **given)[0], theirs)


@pytest.mark.parametrize("cls", [elementwise_unary.Rsqrt, elementwise_unary.Sqrt])
@pytest.mark.parametrize("grid", [(0.05, 0.02), (1.0, 1 / 127), (0.002, 0.3)])
def test_roots_are_those_of_litert(cls: type[Op], grid: tuple[float, float]) -> None:
    scale, to = grid
    operand, result = Affine(scale, -128), Affine(to, -9)
    same(cls, every(INT8), affine=[operand], results=[result])
    x = every(INT16)[2**15 :]
    same(cls, x, affine=[Affine(scale / 50)], results=[Affine(to / 50)])


@pytest.mark.parametrize("cls", [elementwise_unary.Abs, elementwise_unary.Neg])
def test_16_bits_without_scales_are_plain_numbers(cls: type[Op]) -> None:
    same(cls, every(INT16))
    if cls is elementwise_unary.Neg:  # LiteRT heeds no scales
        same(cls, every(INT8), affine=[Affine(0.1, 3)], results=[Affine(0.2, 5)])


def test_quantized_rsqrt_refuses_negative_numbers() -> None:
    given = affine(INT8, *GRIDS[0])
    with pytest.raises(LucioleError, match="131 of 256 numbers are negative, roots need others"):
        run_reference(elementwise_unary.Rsqrt, [every(INT8)], **given)


@pytest.mark.parametrize("cls", [elementwise_unary.Rsqrt, elementwise_unary.Sqrt])
@pytest.mark.parametrize("scale", [1e-4, 0.003, 1.0])
def test_roots_of_16_bits_run_compiled(cls: type[Op], scale: float) -> None:
    x = every(INT16)[2**15 :]
    check_compiled(cls, [x], affine=[Affine(scale)], results=[Affine(scale / 3)])


@pytest.mark.parametrize("cls", [elementwise_unary.Rsqrt, elementwise_unary.Sqrt])
def test_compiled_roots_refuse_negative_numbers(cls: type[Op]) -> None:
    x = np.array([4, -3, 9, -1, 0], np.int16)
    model = one_op(cls, [x], affine=[Affine(0.01)], results=[Affine(0.02)])
    interpreter = Interpreter(model)
    name = model.graph.inputs[0].name
    with pytest.raises(LucioleError, match=r"'y0': 2 of 5 numbers are negative, roots need"):
        interpreter.run({name: x})
    (found,) = interpreter.run({name: np.abs(x)}).values()
    assert (found > 0).sum() >= 4


def test_quantized_logistic_refuses_other_results_of_16_bits() -> None:
    given: dict[str, Any] = {"affine": [Affine(0.1)], "results": [Affine(0.001)]}
    with pytest.raises(LucioleError, match="2\\^-15 and 0 are needed for 16 bits"):
        run_reference(activations.Logistic, [every(INT16)], **given)


def test_quantized_hard_swish_refuses_results_of_too_fine_a_scale() -> None:
    given: dict[str, Any] = {"affine": [Affine(1.0)], "results": [Affine(1e-4)]}
    with pytest.raises(LucioleError, match=r"too small for the input's 1\.0"):
        run_reference(activations.HardSwish, [every(INT8)], **given)
