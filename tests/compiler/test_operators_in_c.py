"""Operators in C beside the reference kernels, many of them in one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from luciole import Interpreter
from luciole.ir import Array, Op, TensorType
from luciole.ir.ops import comparisons, elementwise_unary, reduce
from luciole.ir.ops.activations import Elu, HardSwish
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.cumsum import Cumsum
from luciole.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, SquaredDifference, Sub
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.gru import GRU
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.logical import LogicalAnd, LogicalNot, LogicalOr
from luciole.ir.ops.mediapipe import Convolution2DTransposeBias, StructPadding
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.ir.ops.select import Select, SelectV2
from luciole.ir.ops.softmax import LogSoftmax
from luciole.ir.ops.space_to_batch_nd import BatchToSpaceND, SpaceToBatchND
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import MirrorPadMode, Padding
from tests.compiler.side_by_side import SideBySide, sound
from tests.compiler_support import built, needs_compiler, program_of, results
from tests.recurrent_support import integer_svdf, layer
from tests.support import Affine
from tests.test_blockwise import model_of

pytestmark = needs_compiler

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(2, 4, 6, 4)).astype(np.float32)
CODES = RNG.integers(-128, 128, (2, 4, 6, 4), np.int8)
KINDS = (IMAGE, CODES, CODES.view(np.uint8), CODES.astype(np.int32), CODES > 0)
GRID, OTHER = Affine(0.05, 3), Affine(0.03, -7)
TO = Affine(0.06, 5, dtype=TensorType.INT8)


def ints(*numbers: object) -> Array:
    return np.array(numbers, np.int32)


def test_movers(tmp_path: Path) -> None:
    every = SideBySide()
    for x in KINDS:
        every.add(Tile, [x, ints(2, 1, 3, 1)], (1,))
        every.add(BroadcastTo, [x[:, :1], ints(3, 2, 4, 6, 4)], (1,))
        every.add(DepthToSpace, [x], block_size=2)
        every.add(SpaceToDepth, [x], block_size=2)
        borders = ints((0, 0), (1, 2), (2, 0), (0, 3))
        every.add(Pad, [x, borders], (1,))
        every.add(PadV2, [x, borders, np.array(7, x.dtype)], (1, 2))
        for mode in MirrorPadMode:
            every.add(MirrorPad, [x, ints((1, 0), (1, 2), (2, 0), (0, 3))], (1,), mode=mode)
        for paddings in (ints((0, 0), (0, 0)), ints((1, 1), (0, 3))):
            every.add(SpaceToBatchND, [x, ints(2, 3), paddings], (1, 2))
        four = np.concatenate([x, x])
        for crops in (ints((0, 0), (0, 0)), ints((1, 0), (2, 1))):
            every.add(BatchToSpaceND, [four, ints(2, 2), crops], (1, 2))
        every.add(Gather, [x, ints((3, 0), (1, 1))], (1,), axis=1)
        every.add(Gather, [x, ints((3, 0), (1, 1))], (), axis=-1)
        every.add(Gather, [x, ints((3, 0), (1, 1))], (), axis=2, batch_dims=1)
        every.add(Gather, [x, np.array([1, 1, 0], np.int64)], (), axis=0)
        every.add(ResizeNearestNeighbor, [x, ints(7, 5)], (1,), half_pixel_centers=True)
        every.add(Select, [np.array([True, False]), x, x[::-1]])
        every.add(SelectV2, [CODES[:1] > 5, x, x[:, :1]])
        for begin in (ints(0, 1, 2, 0), np.array([1, -9, 2**40, 1])):
            every.add(DynamicUpdateSlice, [x, x[:1, 1:4, :3], begin])
            every.add(DynamicUpdateSlice, [x, x[::-1], begin])
    every.check(tmp_path)


def test_indices_that_no_slice_has_give_zeros(tmp_path: Path) -> None:
    every = SideBySide()
    every.add(Gather, [IMAGE, ints(1, -1, 2, 99)], (), axis=3)
    (found,) = built(program_of(every.model), tmp_path).run(every.given)
    wanted = IMAGE[..., [1, 0, 2, 0]] * np.array([1, 0, 1, 0], np.float32)
    np.testing.assert_array_equal(found, wanted)


def test_images_of_other_sizes(tmp_path: Path) -> None:
    every = SideBySide()
    for x in (IMAGE, CODES):
        for half, corners in ((False, False), (True, False), (False, True)):
            options: dict[str, Any] = {"half_pixel_centers": half, "align_corners": corners}
            every.add(ResizeBilinear, [x, ints(7, 5)], (1,), **options)
            every.add(ResizeNearestNeighbor, [x, ints(3, 9)], (1,), **options)
    every.check(tmp_path)


def test_plain_numbers(tmp_path: Path) -> None:
    every = SideBySide()
    odd = IMAGE.copy()
    odd.flat[:5] = [np.nan, np.inf, -np.inf, -0.0, 2.5]
    for x in (odd, CODES.astype(np.int32), CODES.astype(np.int64) << 40):
        for test in comparisons.COMPARISONS:
            every.add(test, [x, x[:, ::-1]])
        for cls in (Add, Sub, Mul, Maximum, Minimum, SquaredDifference):
            every.add(cls, [x[1:], x[:1, 1:2]])
        every.add(elementwise_unary.Abs, [x])
        every.add(elementwise_unary.Neg, [x])
        every.add(elementwise_unary.Square, [x])
        every.add(elementwise_unary.ZerosLike, [x])
        for exclusive in (False, True):
            every.add(Cumsum, [x, ints(2)], (1,), exclusive=exclusive, reverse=True)
            every.add(Cumsum, [x, ints(-1)], (1,), exclusive=exclusive)
    numbers = np.array([0.5, 1.5, 2.5, -0.5, -1.2, 1e9, 8388607.5, -3.0, np.nan, -0.0], np.float32)
    for rounding in (elementwise_unary.Ceil, elementwise_unary.Floor, elementwise_unary.Round):
        every.add(rounding, [numbers])
    every.add(elementwise_unary.Sign, [numbers[:8]])
    for codes in (CODES, CODES.view(np.uint8), CODES.astype(np.int16)):
        every.add(Maximum, [codes, codes[::-1]])
        every.add(Minimum, [codes, codes[::-1]])
    mask = np.where(IMAGE[0] > 0, -np.inf, np.float32(0)).astype(np.float32)
    every.add(Add, [IMAGE, mask], (1,))
    for logic in (LogicalAnd, LogicalOr, comparisons.Equal):
        every.add(logic, [CODES > 5, CODES[::-1] > 5])
    every.add(LogicalNot, [CODES > 5])
    every.check(tmp_path)


def test_casts(tmp_path: Path) -> None:
    every = SideBySide()
    numbers = np.array([3.7, -3.7, 1e9, -1e9, 3e38, np.nan, np.inf, -np.inf, 0.2], np.float32)
    sources = (numbers, CODES, CODES.view(np.uint8), CODES.astype(np.int64) << 33, CODES > 0)
    types = (
        *(TensorType.FLOAT32, TensorType.INT64, TensorType.INT32, TensorType.INT16),
        *(TensorType.INT8, TensorType.UINT8, TensorType.BOOL),
    )
    for x in sources:
        for dtype in types:
            every.add(Cast, [x], dtypes=[dtype])
    every.check(tmp_path)


REDUCTIONS = (reduce.Sum, reduce.ReduceProd, reduce.ReduceMax, reduce.ReduceMin)


def test_reductions(tmp_path: Path) -> None:
    every = SideBySide()
    odd = IMAGE.copy()
    odd[0, :, :, 1] = np.nan
    for axes in ([3], [1, 2], [0, 2], [0, 1, 2, 3]):
        over = ints(*axes)
        for x in (IMAGE, CODES.astype(np.int32), CODES.astype(np.int64)):
            for cls in REDUCTIONS:
                every.add(cls, [x, over], (1,))
        for cls in (reduce.ReduceMax, reduce.ReduceMin):
            every.add(cls, [odd, over], (1,), keep_dims=True)
            every.add(cls, [CODES, over], (1,), affine=[GRID], results=[GRID])
        for logic in (reduce.ReduceAny, reduce.ReduceAll, *REDUCTIONS):
            every.add(logic, [CODES > 60, over], (1,))
        every.add(reduce.Mean, [IMAGE, over], (1,))
        for scaled in (reduce.Mean, reduce.Sum):
            every.add(scaled, [CODES, over], (1,), affine=[GRID], results=[TO])
    for axis in (0, 1, -1):
        for x in (odd, CODES, CODES.astype(np.int32)):
            for place in (ArgMax, ArgMin):
                every.add(place, [x, ints(axis)], (1,), output_type=TensorType.INT32)
                every.add(place, [x, ints(axis)], (1,), output_type=TensorType.INT64)
    every.check(tmp_path, 1e-5)


def test_functions_of_two_bytes(tmp_path: Path) -> None:
    every = SideBySide()
    for cls in (Add, Sub, Mul, SquaredDifference):
        every.add(cls, [CODES, CODES[::-1, :1]], affine=[GRID, OTHER], results=[TO])
    every.add(PRelu, [CODES, CODES[0, :1, :1]], (1,), affine=[GRID, OTHER], results=[TO])
    for test in comparisons.COMPARISONS:
        every.add(test, [CODES, CODES[::-1]], affine=[GRID, OTHER])
    every.check(tmp_path)


def test_functions_of_all_bytes(tmp_path: Path) -> None:
    every = SideBySide()
    x = np.arange(-128, 128, dtype=np.int8)
    unary = elementwise_unary
    functions: list[tuple[type[Op], dict[str, Any]]] = [
        *((cls, {}) for cls in (unary.Abs, unary.Exp, unary.Log, Elu, HardSwish)),
        (LeakyRelu, {"alpha": 0.2}),
        (Gelu, {"approximate": False}),
    ]
    for cls, attributes in functions:
        every.add(cls, [x], affine=[Affine(0.04, -5)], results=[TO], **attributes)
    for root in (unary.Sqrt, unary.Rsqrt):
        every.add(root, [x], affine=[Affine(0.04, -128)], results=[TO])
    every.add(unary.Neg, [x])
    every.check(tmp_path)


def test_normalizations(tmp_path: Path) -> None:
    every = SideBySide()
    scale, shift = RNG.normal(size=(2, 4)).astype(np.float32)
    for x in (IMAGE, 30 * IMAGE):
        every.add(LogSoftmax, [x])
        every.add(L2Normalization, [x])
        every.add(RmsNorm, [x, scale], (1,), epsilon=1e-5)
        every.add(InstanceNorm, [x, scale, shift], (1, 2), epsilon=1e-3, activation=Act.RELU)
        row = x.reshape(2, 4, 24)
        every.add(InstanceNorm, [row, scale, shift], (1, 2), epsilon=1e-3)
    every.add(L2Normalization, [np.zeros((2, 3), np.float32)])
    every.check(tmp_path, 2e-6)


def test_products_of_matrices(tmp_path: Path) -> None:
    every = SideBySide()
    grids: dict[str, Any] = {
        "affine": [GRID, OTHER],
        "results": [Affine(0.2, 4, 0, TensorType.INT8)],
    }
    for x in (IMAGE, CODES):
        given: dict[str, Any] = grids if x is CODES else {}
        for left in (False, True):
            for right in (False, True):
                columns = x[:1, :, :, :3] if left else np.swapaxes(x, -1, -2)[:1, :, :, :3]
                y = np.swapaxes(columns, -1, -2) if right else columns
                every.add(BatchMatMul, [x, y], adjoint_lhs=left, adjoint_rhs=right, **given)
    every.check(tmp_path, 1e-5)


def test_transposed_convolutions(tmp_path: Path) -> None:
    every = SideBySide()
    weights = RNG.normal(size=(3, 3, 2, 4)).astype(np.float32)
    codes = RNG.integers(-127, 128, weights.shape, np.int8)
    for padding, sizes in ((Padding.SAME, (2, 8, 18, 3)), (Padding.VALID, (2, 9, 18, 3))):
        places: dict[str, Any] = {"stride_h": 2, "stride_w": 3, "padding": padding}
        bias = RNG.normal(size=3).astype(np.float32)
        every.add(TransposeConv, [ints(*sizes), weights, IMAGE, bias], (0, 1, 3), **places)
        grids = [None, Affine([0.01, 0.02, 0.03]), GRID, Affine([0.0005, 0.001, 0.0015])]
        whole = ints(100, -50, 7)
        every.add(
            *(TransposeConv, [ints(*sizes), codes, CODES, whole], (0, 1, 3)),
            affine=grids,
            results=[Affine(0.3, 4, 0, TensorType.INT8)],
            **places,
        )
    for kind in (StructPadding.SAME, StructPadding.VALID):
        strides: dict[str, Any] = {"stride_height": 2, "stride_width": 3, "padding": kind}
        every.add(Convolution2DTransposeBias, [IMAGE, weights, bias], (1, 2), **strides)
    every.check(tmp_path, 1e-5)


def test_rows_of_tables(tmp_path: Path) -> None:
    every = SideBySide()
    for table in (IMAGE, CODES):
        every.add(EmbeddingLookup, [ints(1, 0, 1), table], (1,))
    every.check(tmp_path)


def test_rows_of_integers_are_decoded_as_they_are_looked_up(tmp_path: Path) -> None:
    every, rng = SideBySide(), np.random.default_rng(2)
    grids = [0.3], rng.uniform(0.1, 0.9, 40).tolist()
    for scales in grids:
        for dtype, most in ((TensorType.INT8, 127), (TensorType.INT4, 7), (TensorType.INT2, 1)):
            table = rng.integers(-most - 1, most + 1, (40, 3, 11)).astype(np.int8)
            grid = Affine(scales, [0] * len(scales), dtype=dtype)
            given = [ints(39, 0, 5), table]
            floats = [TensorType.FLOAT32]
            every.add(EmbeddingLookup, given, (1,), affine=[None, grid], dtypes=floats)
    sound(every, tmp_path)
    packed = [c.function for c in program_of(every.model).calls]
    assert packed == [f"luc_embedding{s}" for s in ("", "_packed", "_packed")] * 2


def test_rows_of_blocks_in_c(tmp_path: Path) -> None:
    rows = np.array([1, 0, 5], np.int32)
    model = model_of(EmbeddingLookup, rows, 4)
    (found,) = results(model, tmp_path, {"x": rows})
    np.testing.assert_array_equal(found, Interpreter(model).run({"x": rows})["y"])


def test_recurrent_layers_keep_their_state(tmp_path: Path) -> None:
    every = SideBySide()
    shapes: dict[str, tuple[int, ...]] = {
        "input": (3, 5),
        "weights_feature": (8, 5),
        "weights_time": (8, 6),
        "bias": (4,),
        "state": (3, 48),
    }
    cells: dict[str, tuple[int, ...]] = {
        "input": (3, 5),
        "weights": (4, 5),
        "recurrent_weights": (4, 4),
        "bias": (4,),
        "hidden_state": (3, 4),
    }
    models = [
        layer(SVDF, shapes, rank_=2, activation=Act.RELU),
        integer_svdf(),
        layer(RNN, cells, activation=Act.TANH),
    ]
    for major in (False, True):
        steps = cells | {"input": (7, 3, 5) if major else (3, 7, 5)}
        models.append(
            layer(UnidirectionalSequenceRNN, steps, time_major=major, activation=Act.RELU)
        )
    gates: dict[str, tuple[int, ...]] = {
        "input": (7, 3, 5),
        "hidden_hidden": (12, 5),
        "hidden_hidden_bias": (12,),
        "hidden_input": (12, 4),
        "hidden_input_bias": (12,),
        "begun": (3, 4),
    }
    for every_step in (False, True):
        sizes = {name.replace("begun", "state"): shape for name, shape in gates.items()}
        model = layer(GRU, sizes, ("input", "state"), return_sequences=every_step)
        models.append(model)
    for model in models:
        given = [
            RNG.integers(-128, 128, value.dims, np.int8)
            if value.dtype == TensorType.INT8
            else RNG.normal(size=value.dims).astype(np.float32)
            for value in model.graph.inputs
        ]
        every.join(model, given)
    every.check(tmp_path, 2e-6, runs=3)


def test_weights_of_four_bits(tmp_path: Path) -> None:
    every = SideBySide()
    weights = RNG.integers(-7, 8, (3, 3, 2, 4), np.int8)
    bias, to = ints(100, -50, 7), Affine(0.3, 4, dtype=TensorType.INT8)
    scales = Affine([0.01, 0.02, 0.03], [0] * 3, dtype=TensorType.INT4)
    sums = Affine([0.0005, 0.001, 0.0015], [0] * 3)
    grids: dict[str, Any] = {"affine": [GRID, scales, sums], "results": [to]}
    every.add(Conv2D, [CODES, weights, bias], (1, 2), stride_h=2, stride_w=1, **grids)
    rows = weights.reshape(3, 24)
    every.add(FullyConnected, [CODES.reshape(8, 24), rows, bias], (1, 2), **grids)
    every.check(tmp_path)


def test_floats_by_weights_of_bytes(tmp_path: Path) -> None:
    every = SideBySide()
    weights, bias = RNG.integers(-127, 128, (4, 3, 3, 4), np.int8), IMAGE[0, 0, 0]
    odd = 9 * IMAGE
    odd[1] = 0
    several, one = Affine([0.01, 0.02, 0.03, 0.04], [0] * 4), Affine(0.02)
    last = Affine([0.01, 0.02, 0.03, 0.04], [0] * 4, 3)
    for x in (IMAGE, odd, 1e-39 * IMAGE, np.abs(IMAGE), np.where(IMAGE > 2, np.nan, IMAGE)):
        for scales in (several, one):
            grids: dict[str, Any] = {"affine": [None, scales], "activation": Act.RELU}
            every.add(Conv2D, [x, weights, bias], (1, 2), stride_h=1, stride_w=2, **grids)
            for asymmetric in (False, True):
                given = [x.reshape(8, 24), weights.reshape(4, 36)[:, :24], bias]
                grids["asymmetric_quantize_inputs"] = asymmetric
                every.add(FullyConnected, given, (1, 2), **grids)
        by_channel: dict[str, Any] = {"affine": [None, last], "depth_multiplier": 1}
        given = [x, weights[:1], bias]
        every.add(DepthwiseConv2D, given, (1, 2), stride_h=1, stride_w=1, **by_channel)
    every.check(tmp_path)
