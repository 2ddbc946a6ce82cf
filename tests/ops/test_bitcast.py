"""BITCAST against LiteRT and NumPy's views."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, Model, ShapeError, TensorType, Value
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops.bitcast import Bitcast, recast
from luciole.kernels.core import evaluation
from tests.native_support import built, run_steps
from tests.support import litert

F32, U8, U16, I32, I64 = (TensorType[n] for n in ("FLOAT32", "UINT8", "UINT16", "INT32", "INT64"))


def model_of(x: Array, dtype: TensorType) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_input("x", x.shape, tensor_type(x.dtype))
    shape = recast(x.shape, value.dtype, dtype)
    result = graph.add_value(Value("y", dtype, shape))
    graph.append(Bitcast(value), results=[result])
    graph.outputs = [result]
    return model


@pytest.mark.parametrize(
    ("before", "after", "shape"),
    [
        (np.float32, I32, (2, 3)),
        (np.int32, F32, ()),
        (np.float32, U8, (2, 3)),
        (np.int32, U16, (0, 3)),
        (np.uint8, F32, (5, 4)),
        (np.uint16, I64, (4,)),
    ],
)
def test_bytes_are_those_of_litert_and_of_the_compiled_kernel(
    before: DTypeLike, after: TensorType, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(0, 2**15, shape).astype(before)
    model = model_of(x, after)
    op = model.graph.ops[0]
    assert op.result_shapes() == (op.output.shape,)
    (ours,) = evaluation.computed(op, [x])
    assert ours.tobytes() == x.tobytes()
    if x.size:  # LiteRT's Python door lets no empty tensor in
        (theirs,) = litert(to_bytes(model, "tflite"), [x])
        assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)
        assert theirs.tobytes() == ours.tobytes()
    step, context = built(op, [x])
    assert step is not None
    run_steps(step, [step.record])
    assert context.results[0].tobytes() == x.tobytes()


def test_bytes_become_truth_values() -> None:
    x = np.array([0, 1, 2, 255], np.uint8)
    op = model_of(x, TensorType.BOOL).graph.ops[0]
    (ours,) = evaluation.computed(op, [x])
    np.testing.assert_array_equal(ours, [False, True, True, True])
    assert ours.view(np.uint8).max() == 1
    assert built(op, [x])[0] is None


def test_unknown_extents_stay_unknown() -> None:
    assert recast((None, 4), F32, U8) == (None, 4, 4)
    assert recast((3, None), U8, F32) == (3,)


@pytest.mark.parametrize(
    ("shape", "before", "after", "message"),
    [
        ((2, 3), U8, F32, "the last axis of x has 3, FLOAT32 has 4"),
        ((), U8, I64, "one UINT8 does not make a INT64"),
        ((2,), F32, TensorType.INT4, "elements of INT4 have no bytes of their own"),
        ((2,), TensorType.STRING, F32, "elements of STRING have no bytes of their own"),
    ],
)
def test_bitcast_refuses_bytes_that_do_not_divide(
    shape: tuple[int, ...], before: TensorType, after: TensorType, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        recast(shape, before, after)


def test_bitcast_refuses_to_guess_a_type() -> None:
    with pytest.raises(ShapeError, match="the type to cast to is known only from a result"):
        Bitcast(Graph().add_input("x", (2,))).result_dtypes()
