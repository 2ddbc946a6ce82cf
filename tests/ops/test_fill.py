"""FILL against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError, TensorType, Value
from luciole.ir.ops.fill import Fill
from luciole.kernels.core.errors import ExecutionError
from tests.native_support import check_compiled, declines_computed
from tests.support import run_litert, run_reference

ONE = np.array(7, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("dims", [[2, 3], [], [5], [1, 2, 3, 4, 5]])
def test_fillings_are_those_of_litert(dtype: DTypeLike, dims: list[int]) -> None:
    for index in (np.int32, np.int64):
        pair = [np.array(dims, index), np.array(7).astype(dtype)]
        constant = () if dims else (0,)
        ours, theirs = (run(Fill, pair, constant)[0] for run in (run_reference, run_litert))
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.complex128])
@pytest.mark.parametrize("dims", [[2, 37], [], [0, 3]])
def test_compiled_fillings_are_those_of_the_reference(dtype: DTypeLike, dims: list[int]) -> None:
    pair = [np.array(dims, np.int32), np.array([7]).astype(dtype)]
    check_compiled(Fill, pair, (0,))
    assert declines_computed(Fill, pair, (0,), 0)


def test_computed_extents_are_unknown() -> None:
    graph = Graph()
    value = graph.add_input("v", ())
    assert Fill(graph.add_input("a", (3,), TensorType.INT32), value).result_shapes() == (
        (None, None, None),
    )
    op = Fill(graph.add_input("b", (None,), TensorType.INT32), value)
    with pytest.raises(ShapeError, match="so is the length of dims"):
        op.result_shapes()
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (3, 4)))])
    assert op.result_shapes() == ((None, None),)


@pytest.mark.parametrize("constant", [(0,), ()])
def test_fill_refuses_negative_extents(constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"dims is \[2, -1\], nothing below 0 is possible"):
        run_reference(Fill, [np.array([2, -1], np.int32), ONE], constant)


def test_fill_refuses_several_values() -> None:
    with pytest.raises(ShapeError, match="elements: value has 2, a filling has 1"):
        run_reference(Fill, [np.array([2], np.int32), np.ones(2, np.float32)], (0,))


@pytest.mark.parametrize("dims", [[2**31 - 1] * 2, [2**62, 2**62, 2**62]])
def test_fill_refuses_an_absurd_size(dims: list[int]) -> None:
    with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed where the shape is"):
        run_reference(Fill, [np.array(dims, np.int64), ONE])
