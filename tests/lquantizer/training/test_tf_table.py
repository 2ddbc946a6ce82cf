"""Every operator's TensorFlow form against the interpreter: models made for one record, run on
three at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType
from luciole.ir.ops import activations as act
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.reduce import Mean, ReduceMax, ReduceMin, ReduceProd, Sum
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.ops.unpack import Unpack
from luciole.ir.value import has_batch_axis
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.lquantizer.training.tf_table import registered
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.support import data_path, one_op

GENERATOR = np.random.default_rng(0)


def f(*shape: int) -> Array:
    return GENERATOR.normal(0, 1, shape).astype(np.float32)


def i(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


class X(NamedTuple):
    """An input of one record; ``least`` moves its random numbers up."""

    shape: tuple[int, ...]
    least: float = -np.inf


def conv(cls: type[Op], *operands: Any, **attributes: Any) -> tuple[Any, ...]:
    return (cls, operands, {"stride_h": 1, "stride_w": 1, **attributes})


IMAGE = X((1, 7, 6, 4))
DILATED = {"dilation_h_factor": 2, "dilation_w_factor": 3}
POOL = {"filter_height": 3, "filter_width": 2, "stride_h": 2, "stride_w": 2}

CASES: dict[str, tuple[Any, ...]] = {
    "conv": conv(Conv2D, IMAGE, f(5, 3, 3, 4), f(5), activation=Act.RELU),
    "conv-strides": conv(Conv2D, IMAGE, f(5, 3, 2, 4), None, stride_h=2, stride_w=3),
    "conv-valid": conv(Conv2D, IMAGE, f(5, 3, 2, 4), f(5), padding=Padding.VALID, stride_h=2),
    "conv-groups": conv(Conv2D, IMAGE, f(6, 3, 3, 2), f(6), activation=Act.RELU6),
    "conv-dilated": conv(Conv2D, IMAGE, f(5, 3, 2, 4), f(5), **DILATED),
    "conv-dilated-strided": conv(Conv2D, IMAGE, f(5, 2, 2, 4), f(5), stride_h=2, **DILATED),
    "depthwise": conv(DepthwiseConv2D, IMAGE, f(1, 3, 3, 8), f(8), activation=Act.RELU_N1_TO_1),
    "depthwise-stride": conv(DepthwiseConv2D, IMAGE, f(1, 3, 3, 4), None, stride_h=2, stride_w=2),
    "depthwise-strides": conv(DepthwiseConv2D, IMAGE, f(1, 3, 2, 4), f(4), stride_h=2),
    "depthwise-strides-valid": conv(
        DepthwiseConv2D, IMAGE, f(1, 3, 2, 4), f(4), stride_w=2, padding=Padding.VALID
    ),
    "depthwise-dilated": conv(DepthwiseConv2D, IMAGE, f(1, 2, 2, 8), f(8), **DILATED),
    "transpose-conv": conv(
        TransposeConv, i(1, 14, 12, 3), f(3, 3, 2, 4), IMAGE, f(3), stride_h=2, stride_w=2
    ),
    "dense": (FullyConnected, (X((1, 6)), f(4, 6), f(4)), {"activation": Act.TANH}),
    "dense-rows": (FullyConnected, (X((1, 3, 4)), f(5, 12), None), {}),
    "dense-axes": (FullyConnected, (X((1, 3, 6)), f(4, 6), f(4)), {"keep_num_dims": True}),
    "matmul": (BatchMatMul, (X((1, 3, 4)), X((1, 5, 4))), {"adjoint_rhs": True}),
    "matmul-constant": (BatchMatMul, (X((1, 4, 3)), f(1, 4, 5)), {"adjoint_lhs": True}),
    "average-pool": (AveragePool2D, (IMAGE,), {**POOL, "activation": Act.RELU}),
    "max-pool": (MaxPool2D, (IMAGE,), {**POOL, "padding": Padding.VALID}),
    "max-pool-same": (MaxPool2D, (IMAGE,), POOL),
    "mean": (Mean, (IMAGE, i(1, 2)), {}),
    "sum": (Sum, (IMAGE, i(-1, 3)), {"keep_dims": True}),
    "reduce-max": (ReduceMax, (IMAGE, i(2)), {}),
    "reduce-min": (ReduceMin, (IMAGE, i(2)), {}),
    "reduce-prod": (ReduceProd, (IMAGE, i(1)), {}),
    "pow": (binary.Pow, (X((1, 9), 0.1), f(9)), {}),
    "softmax": (Softmax, (X((1, 5)),), {"beta": 0.5}),
    "log-softmax": (LogSoftmax, (X((1, 5)),), {}),
    "gelu": (Gelu, (X((1, 9)),), {}),
    "gelu-approximate": (Gelu, (X((1, 9)),), {"approximate": True}),
    "leaky": (LeakyRelu, (X((1, 9)),), {"alpha": 0.2}),
    "prelu": (PRelu, (IMAGE, f(1, 1, 4)), {}),
    "div": (binary.Div, (X((1, 9)), X((1, 9), 0.5)), {}),
    "add-constant": (binary.Add, (X((1, 3, 9)), f(9)), {"activation": Act.RELU}),
    "cast": (Cast, (X((1, 9)),), {"out_data_type": TensorType.FLOAT32}),
    "reshape": (Reshape, (IMAGE, i(1, 168)), {}),
    "reshape-left": (Reshape, (IMAGE, i(1, -1, 4)), {}),
    "reshape-attribute": (Reshape, (IMAGE, None), {"new_shape": (-1, 6, 28)}),
    "expand-dims": (ExpandDims, (IMAGE, i(-1)), {}),
    "squeeze": (Squeeze, (X((1, 1, 4, 1)),), {"squeeze_dims": (1, -1)}),
    "transpose": (Transpose, (IMAGE, i(0, 3, 1, -2)), {}),
    "reverse": (ReverseV2, (IMAGE, i(1, -1)), {}),
    "concatenation": (Concatenation, (IMAGE, X((1, 7, 6, 2))), {"axis": -1}),
    "split": (Split, (i(2), IMAGE), {"num_splits": 3}),
    "split-v": (SplitV, (IMAGE, i(1, 3), i(3)), {"num_splits": 2}),
    "tile": (Tile, (X((1, 4)), i(1, 3)), {}),
    "broadcast-to": (BroadcastTo, (X((1, 1, 4)), i(1, 3, 4)), {}),
    "select": (SelectV2, (np.array([[True, False, True]]), X((1, 3)), X((1, 3))), {}),
    "pack": (Pack, (X((1, 4)), X((1, 4))), {"axis": 1, "values_count": 2}),
    "unpack": (Unpack, (IMAGE,), {"axis": 3, "num": 4}),
    "slice": (Slice, (IMAGE, i(0, 1, 2, 0), i(1, 3, -1, 4)), {}),
    "gather": (Gather, (IMAGE, i(2, 0, 2)), {"axis": 1}),
    "pad": (Pad, (IMAGE, np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32)), {}),
    "pad-v2": (PadV2, (X((1, 3)), np.array([[0, 0], [1, 2]], np.int32), f(1)), {}),
    "strided-slice": (StridedSlice, (IMAGE, i(0, 1, 0), i(1, 6, 9), i(1, 2, 1)), {}),
    "strided-slice-back": (
        StridedSlice,
        (IMAGE, i(0, -1, 2), i(0, 0, 0), i(1, -2, 1)),
        {"end_mask": 3, "shrink_axis_mask": 4},
    ),
    **{
        c.__name__: (c, (X((1, 9)),), {})
        for c in (unary.Abs, unary.Neg, unary.Exp, unary.Square, unary.Sin, unary.Cos)
    },
    **{c.__name__: (c, (X((1, 9), 0.1),), {}) for c in (unary.Log, unary.Sqrt, unary.Rsqrt)},
    **{
        c.__name__: (c, (X((1, 9)),), {})
        for c in (act.Tanh, act.Logistic, act.Relu, act.Relu6, act.ReluN1To1, act.Elu)
    },
    "HardSwish": (act.HardSwish, (X((1, 9)),), {}),
    **{
        c.__name__: (c, (X((1, 3, 9)), X((1, 1, 9))), {})
        for c in (
            binary.Add,
            binary.Sub,
            binary.Mul,
            binary.Maximum,
            binary.Minimum,
            binary.SquaredDifference,
        )
    },
}


def random_records(model: Model, operands: tuple[Any, ...], count: int) -> dict[str, Array]:
    given = [x for x in operands if isinstance(x, X)]
    return {
        v.name: np.maximum(f(count, *x.shape[1:]) * 2, x.least).astype(np.float32)
        for v, x in zip(model.graph.inputs, given, strict=True)
    }


def together(model: Model, records: dict[str, Array]) -> list[Array]:
    graph = TensorGraph(model.graph)
    return [np.asarray(y) for y in graph.function(model.graph.outputs)(*records.values())]


def alone(model: Model, records: dict[str, Array]) -> list[Array]:
    interpreter = Interpreter(model)
    count = len(next(iter(records.values())))
    parts = [interpreter.run({n: a[k : k + 1] for n, a in records.items()}) for k in range(count)]
    return [np.concatenate([p[v.name] for p in parts]) for v in model.graph.outputs]


def assert_close(found: list[Array], wanted: list[Array], tolerance: float = 1e-5) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(np.ptp(b), 1e-3)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_the_interpreter_does(name: str) -> None:
    cls, operands, attributes = CASES[name]
    constant = [k for k, x in enumerate(operands) if not isinstance(x, X)]
    arrays = [np.ones(x.shape, np.float32) if isinstance(x, X) else x for x in operands]
    model = one_op(cls, arrays, constant, **attributes)
    assert all(has_batch_axis(v) for v in model.graph.outputs)
    records = random_records(model, operands, 3)
    assert_close(together(model, records), alone(model, records))


@pytest.mark.parametrize("name", [n for n in CASES if n != "cast"])
def test_a_gradient_passes_through_it(name: str) -> None:
    from luciole.lquantizer.training.tensorflow import tensorflow

    tf = tensorflow()
    cls, operands, attributes = CASES[name]
    constant = [k for k, x in enumerate(operands) if not isinstance(x, X)]
    arrays = [np.ones(x.shape, np.float32) if isinstance(x, X) else x for x in operands]
    graph = TensorGraph(one_op(cls, arrays, constant, **attributes).graph)
    records = random_records(Model([graph.graph]), operands, 2)

    def slopes(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            contents = graph(inputs)
            total = tf.add_n([tf.reduce_sum(contents[v] ** 2) for v in graph.graph.outputs])
        return tape.gradient(total, inputs)

    compiled = tf.function(slopes, input_signature=graph.signature(), autograph=False)
    for slope, given in zip(compiled(*records.values()), records.values(), strict=True):
        assert slope.shape == given.shape
        assert np.isfinite(slope.numpy()).all()
        assert slope.numpy().any()


def test_every_form_there_is_was_tried() -> None:
    assert {case[0] for case in CASES.values()} | {Shape, Fill} == registered()


def test_a_shape_computed_from_the_number_of_records_stays_open() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, 4, 3))
    extents = graph.append(Shape(x, out_type=TensorType.INT32), "extents").output
    begin, end, one = (graph.add_constant(n, i(k)) for n, k in (("b", 0), ("e", 1), ("s", 1)))
    taken = StridedSlice(extents, begin, end, one, shrink_axis_mask=1)
    count = graph.append(taken, "count").output
    rest = graph.add_constant("rest", np.array(12, np.int32))
    wanted = graph.append(Pack((count, rest), values_count=2), "wanted").output
    graph.outputs = [graph.append(Reshape(x, wanted), "y").output]
    records = {"x": f(3, 4, 3)}
    np.testing.assert_array_equal(together(model, records)[0], records["x"].reshape(3, 12))


def test_steps_in_front_of_the_records_and_back() -> None:
    """Converters write the transposition of a single record as a RESHAPE."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 5, 3))
    to_steps = graph.append(Reshape(x, graph.add_constant("s", i(5, 1, 3))), "steps").output
    parts = graph.append(Unpack(to_steps, num=5), *"abcde")
    last = Pack(tuple(parts.results[::-1]), values_count=5)
    back = graph.append(last, "back").output
    first = Slice(back, graph.add_constant("b", i(0, 0, 0)), graph.add_constant("n", i(2, 1, 3)))
    two = graph.append(first, "two").output
    graph.outputs = [graph.append(Reshape(two, graph.add_constant("f", i(1, 6))), "y").output]
    records = {"x": f(3, 5, 3)}
    assert_close(together(model, records), alone(model, records))


def test_a_number_filled_into_as_many_records_as_there_are() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, 3))
    extents = graph.append(Shape(x, out_type=TensorType.INT32), "extents").output
    two = graph.add_constant("two", np.array(2, np.float32))
    filled = graph.append(Fill(extents, two), "filled").output
    graph.outputs = [graph.append(binary.Mul(x, filled), "y").output]
    records = {"x": f(4, 3)}
    np.testing.assert_array_equal(together(model, records)[0], 2 * records["x"])


@pytest.mark.parametrize("name", ["resnet8_fp32", "vww_96_fp32", "ad01_fp32"])
def test_a_network_computes_what_the_interpreter_does(name: str) -> None:
    model = luciole.load(data_path(f"models/{name}.tflite"))
    shape = [n or 1 for n in model.graph.inputs[0].shape[1:]]
    scale = 64 if name == "resnet8_fp32" else 1  # raw pixels
    records = {model.graph.inputs[0].name: np.abs(f(3, *shape)) * scale}
    assert_close(together(model, records), alone(model, records))
