"""Transposed convolutions and matrix products of quantized tensors: bit for bit LiteRT's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import LucioleError, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import Padding
from tests.ops.int8_support import INT8, INT16, NUMPY, UINT8, integers, layer
from tests.support import Affine, one_op, run_litert, run_native, run_reference


@pytest.mark.parametrize(("dtype", "channels"), [(INT8, True), (UINT8, False), (INT16, True)])
@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("bias", [np.int32, np.int64, None])
def test_transposed_convolutions_are_those_of_litert(
    dtype: TensorType, channels: bool, padding: Padding, bias: Any
) -> None:
    if (dtype == INT16) == (bias is np.int32):
        bias = None
    x, filter = (2, 4, 5, 6), (7, 3, 2, 6)
    options: dict[str, Any] = {"stride_h": 2, "stride_w": 3, "padding": padding}
    made = layer(TransposeConv, x, filter, 3, dtype, channels=channels, bias=bias, **options)
    sizes = (2, 8, 15, 7) if padding == Padding.SAME else (2, 9, 14, 7)
    data, weights, given = made.operands
    arrays = [np.array(sizes, np.int32), weights, data, given]
    of_data, of_weights, of_bias = made.options.pop("affine")
    made.options["affine"] = (None, of_weights, of_data, of_bias)
    ours, theirs = (
        run(TransposeConv, arrays, (0, 1, 3), **made.options)[0]
        for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("stride", [(2, 2), (1, 1), (3, 2)])
@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize(
    ("filter", "x"), [((61, 3, 2, 6), (2, 4, 5, 6)), ((64, 2, 2, 16), (1, 6, 3, 16))]
)
def test_compiled_transposed_convolutions_are_the_references(
    dtype: TensorType,
    stride: tuple[int, int],
    padding: Padding,
    filter: tuple[int, ...],
    x: tuple[int, ...],
) -> None:
    """Also of sizes that cut windows off, and strides beyond the filter, which leave pixels that no
    window meets.
    """
    bias = np.int64 if dtype == INT16 else np.int32
    options: dict[str, Any] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    made = layer(TransposeConv, x, filter, 5, dtype, bias=bias, **options)
    data, weights, given = made.operands
    assert data is not None
    of_data, of_weights, of_bias = made.options.pop("affine")
    made.options["affine"] = (None, of_weights, of_data, of_bias)
    whole = [(n - 1) * s + k for n, s, k in zip(x[1:3], stride, filter[1:3], strict=True)]
    for cut in (0, 2, -3):
        sizes = np.array([x[0], *(n - cut for n in whole), filter[0]], np.int32)
        arrays = [sizes, weights, data, given]
        (expected,) = run_reference(TransposeConv, arrays, (0, 1, 3), **made.options)
        result = run_native(one_op(TransposeConv, arrays, (0, 1, 3), **made.options), data)
        np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("dtype", [INT8, INT16])
@pytest.mark.parametrize("adjoint", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("batches", [((), ()), ((2,), (2,)), ((2, 1), (3,))])
def test_products_of_matrices_are_those_of_litert(
    dtype: TensorType, adjoint: tuple[bool, bool], batches: tuple[Any, Any]
) -> None:
    rng = np.random.default_rng(5)
    shapes = [(*batches[0], 5, 9), (*batches[1], 9, 6)]
    arrays = [integers(rng, NUMPY[dtype], shape) for shape in shapes]
    arrays = [a.swapaxes(-1, -2).copy() if t else a for a, t in zip(arrays, adjoint, strict=True)]
    zero = (0, 0, 0) if dtype == INT16 else (3, -7, 11)
    scale = 0.013 * 0.017 * 3 * (150 if dtype == INT8 else 40_000)
    options: dict[str, Any] = {"adjoint_lhs": adjoint[0], "adjoint_rhs": adjoint[1]}
    options["affine"] = (Affine(0.013, zero[0]), Affine(0.017, zero[1]))
    options["results"] = [Affine(scale, zero[2])]
    ours, theirs = (run(BatchMatMul, arrays, **options)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert len(np.unique(ours)) > 9


def test_products_of_matrices_refuse_several_scales() -> None:
    arrays = [np.ones((3, 4), np.int8), np.ones((4, 2), np.int8)]
    one, several = Affine(0.5), Affine([0.5, 0.7], [0, 0], 1)
    with pytest.raises(LucioleError, match="the second matrix has 2 scales; one is needed"):
        run_reference(BatchMatMul, arrays, affine=(one, several), results=[one])
