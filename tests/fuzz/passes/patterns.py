"""What passes look for, in the many ways in which it may be spelled: clean-up, canonical forms,
layout.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Value
from luciole.ir.ops.activations import HardSwish, Relu
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Div, FloorMod, Maximum, Minimum, Mul, Pow, Sub
from luciole.ir.ops.elementwise_unary import Abs, Exp, Rsqrt, Sqrt
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.fake_quant import FakeQuant
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quantization import Affine
from luciole.schema.enums import Padding, TensorType
from tests.fuzz.passes.building import Builder

Pattern = Callable[[Builder], Value]
PATTERNS: dict[str, list[Pattern]] = {}
"""By the name of the pass that looks for it."""


def pattern(*names: str) -> Callable[[Pattern], Pattern]:
    """Register what passes look for."""

    def register(build: Pattern) -> Pattern:
        for name in names:
            PATTERNS.setdefault(name, []).append(build)
        return build

    return register


def image(b: Builder) -> Value:
    """Make an input [1, h, w, c]."""
    return b.input(1, b.pick(4, 5, 6), b.pick(4, 5, 7), b.pick(1, 2, 4, 6))


@pattern("remove_unnecessary_add", "remove_unnecessary_mul", "remove_unnecessary_div")
def neutral(b: Builder) -> Value:
    x = b.around(image(b))
    x = b.either(Add, x, b.number(0))
    x = b.either(Mul, x, b.number(1))
    x = b.put(Sub(x, b.number(0)) if b.chance() else Sub(b.number(0), x))
    return b.put(Div(x, b.number(1)))


@pattern("remove_unnecessary_cast", "fold_cast")
def casts(b: Builder) -> Value:
    x = b.input(1, 5, 4, 3)
    same = Cast(x, in_data_type=TensorType.FLOAT32, out_data_type=TensorType.FLOAT32)
    whole = Cast(b.ints(3, 4, 5), out_data_type=TensorType.FLOAT32)
    return b.put(Mul(b.put(same), b.put(Mul(b.put(whole), b.normal(1, 5, 1, 3)))))


@pattern(
    *("remove_unnecessary_reshape", "remove_redundant_reshape", "substitute_squeeze_to_reshape"),
    *("substitute_expand_dims_to_reshape", "fold_reshape", "fold_squeeze"),
)
def reshapes(b: Builder) -> Value:
    x = b.around(b.input(1, 4, 6))
    x = b.put(Squeeze(x, squeeze_dims=(0,)) if b.chance() else Squeeze(x))
    x = b.put(ExpandDims(x, b.ints(b.pick(0, 1, -1))))
    x = b.put(Reshape(x, b.ints(4, 6)))
    x = b.put(Reshape(x, b.ints(*((2, 12), (-1, 6), (4, 6))[b.pick(0, 1, 2)])))
    flat = b.put(Reshape(b.normal(6, 1), b.ints(6)))
    flat = b.put(Add(flat, b.put(Squeeze(b.normal(1, 6)))))
    return b.put(Add(b.put(Reshape(x, b.ints(4, 6))), flat))


@pattern(
    *("remove_unnecessary_slice", "remove_unnecessary_strided_slice", "remove_unnecessary_split"),
    *("remove_unnecessary_concatenation", "remove_unnecessary_pad", "remove_unnecessary_tile"),
)
def whole(b: Builder) -> Value:
    x = b.around(b.input(1, 4, 6))
    x = b.put(Slice(x, b.ints(0, 0, 0), b.ints(-1, 4, b.pick(6, 5))))
    x = b.put(Slice(x, b.ints(0, 0, 0), b.ints(1, 4, -1)))
    c = x.dims[2]
    x = b.put(StridedSlice(x, b.ints(0, 0, 0), b.ints(1, 4, c), b.ints(1, 1, b.pick(1, 1, 2))))
    (x,) = b.put_all(Split(b.ints(1), x, num_splits=1), 1)
    x = b.put(Pad(b.put(Concatenation((x,), axis=1)), _paddings(b, [[0, 0], [0, 0], [0, 0]])))
    return b.put(BroadcastTo(b.put(Tile(x, b.ints(1, 1, 1))), b.ints(*x.dims)))


def _paddings(b: Builder, pairs: list[list[int]]) -> Value:
    return b.graph.add_constant(b.graph.unique_name("pads"), np.array(pairs, np.int32))


@pattern(
    *("remove_redundant_transpose", "remove_unnecessary_transpose", "sink_transposes"),
    *("substitute_transpose_to_reshape", "convert_nchw_to_nhwc"),
)
def transposes(b: Builder) -> Value:
    x = b.around(b.input(1, 3, 4, 5))
    x = b.put(Transpose(x, b.ints(*((0, 2, 3, 1), (0, 1, 2, 3), (1, 0, 2, 3))[b.pick(0, 1, 2)])))
    x = b.around(x) if b.chance() else x
    x = b.put(Transpose(x, b.ints(*((0, 3, 1, 2), (0, 2, 3, 1), (2, 0, 1, 3))[b.pick(0, 1, 2)])))
    flat = b.put(Reshape(x, b.ints(1, x.dims[1], -1))) if x.dims[0] == 1 else x
    return b.put(Transpose(flat, b.ints(0, 2, 1) if flat is not x else b.ints(1, 0, 2, 3)))


@pattern(
    *("sink_transposes", "convert_nchw_to_nhwc", "forward_transpose_op"),
    "fuse_transpose_with_mean",
)
def turned(b: Builder) -> Value:
    x = b.put(Transpose(image(b), b.ints(0, 3, 1, 2)))
    channels = x.dims[1]
    if b.chance(0.3):
        return b.put(Mean(x, b.ints(2, 3), keep_dims=b.chance(0.2)))
    slopes = b.constant(b.random.uniform(0.1, 0.5, (channels, 1, 1)))
    x = b.put(PRelu(x, slopes)) if b.chance() else x
    x = b.put(Mul(x, b.normal(1, channels, 1, 1))) if b.chance() else x
    x = b.put(Concatenation((x, b.put(Abs(x))), axis=1)) if b.chance() else x
    if x.dims[1] % 2 == 0 and b.chance():
        first, second = b.put_all(Split(b.ints(1), x, num_splits=2), 2)
        second = b.put(Abs(second)) if b.chance(0.3) else second
        x = b.put(Concatenation((second, first), axis=1))
    x = b.put(Mean(x, b.ints(2, 3), keep_dims=b.chance())) if b.chance() else x
    return b.put(Transpose(x, b.ints(0, 2, 3, 1))) if len(x.dims) == 4 else x


@pattern("convert_nchw_to_nhwc")
def channels_first(b: Builder) -> Value:
    x = b.input(1, 4, 6, 5)
    for _ in range(b.pick(1, 2, 4)):
        x = b.around(x)
        x = b.either(Mul, x, b.normal(1, 4, 1, 1)) if b.chance() else x
        x = b.put(Add(x, b.input(*x.dims))) if b.chance(0.3) else x
        x = b.put(Pad(x, _paddings(b, [[0, 0], [0, 0], [1, 0], [0, 1]]))) if b.chance() else x
        x = b.put(Add(x, b.put(Mean(x, b.ints(2, 3), keep_dims=True)))) if b.chance() else x
        if b.chance():
            pooled = b.put(Transpose(x, b.ints(0, 2, 3, 1)))
            pool = MaxPool2D(pooled, padding=Padding.VALID, filter_width=2, filter_height=1)
            pool.stride_w = pool.stride_h = 1
            x = b.put(Transpose(b.put(pool), b.ints(0, 3, 1, 2)))
    return b.put(Reshape(x, b.ints(1, -1))) if b.chance() else x


@pattern("fuse_mean_with_mean", "fuse_transpose_with_mean")
def means(b: Builder) -> Value:
    x, keep = b.input(1, 3, 4, 5), b.chance()
    x = b.put(Transpose(x, b.ints(0, 3, 1, 2)))
    x = b.put(Mean(x, b.ints(b.pick(3, 2, -1)), keep_dims=keep))
    return b.put(Mean(x, b.ints(2), keep_dims=keep or b.chance(0.1)))


@pattern("nchw_to_nhwc_input_shape", "nchw_to_nhwc_output_shape", "put_channels_last")
def ends(b: Builder) -> Value:
    x = b.around(b.put(Transpose(b.input(1, 3, 4, 5), b.ints(0, 2, 3, 1))))
    return b.put(Transpose(b.put(Exp(x)), b.ints(0, 3, 1, 2)))


@pattern("substitute_pack_to_reshape", "substitute_splitv_to_split")
def packs(b: Builder) -> Value:
    x = b.around(b.input(2, 6))
    sizes = ((2, 2, 2), (1, 3, 2))[b.pick(0, 1)]
    first, *_ = b.put_all(SplitV(x, b.ints(*sizes), b.ints(1), num_splits=3), 3)
    return b.put(Pack((first,), values_count=1, axis=b.pick(0, 1, 2)))


@pattern("substitute_strided_slice_to_reshape")
def shrunk(b: Builder) -> Value:
    x = b.around(b.input(1, 1, b.pick(1, 4)))
    op = StridedSlice(x, b.ints(0, 0), b.ints(1, 1), b.ints(1, 1), shrink_axis_mask=b.pick(1, 3))
    return b.put(op)


@pattern("substitute_padv2_to_pad")
def padded(b: Builder) -> Value:
    x = b.put((Relu, Abs)[b.pick(0, 1)](image(b)))
    pads = [[0, 0], [1, b.pick(0, 1, 2)], [b.pick(0, 1), 1], [0, 0]]
    x = b.put(PadV2(x, _paddings(b, pads), b.constant(float(b.pick(0, -9, 3)))))
    size = b.pick(2, 3)
    pool = MaxPool2D(x, padding=Padding.VALID, filter_width=size, filter_height=size)
    pool.stride_w = pool.stride_h = b.pick(1, 2)
    return b.put(pool)


@pattern("replace_sub_with_add", "replace_div_with_mul", "fuse_mul_with_div", "fold_mul")
def constants(b: Builder) -> Value:
    x = b.put(Exp(b.input(2, 5)))
    x = b.put(Sub(x, b.normal(5), activation=b.activation()))
    x = b.put(Div(b.put(Exp(x)), b.positive(5)))
    x = b.either(Mul, x, b.positive(1))
    if b.chance():
        x = b.put(Div(x, b.positive(5)))
    x = b.put(Div(b.positive(5), x))
    return b.either(Mul, x, b.put(Mul(b.positive(5), b.positive(1))))


@pattern("transform_sqrt_div_to_rsqrt_mul", "fuse_rsqrt", "transform_pow_to_products_and_roots")
def roots(b: Builder) -> Value:
    x = b.put(Add(b.put(Abs(b.input(2, 5))), b.number(0.5)))
    root = b.put(Sqrt(x) if b.chance() else Pow(x, b.number(0.5)))
    top = b.number(1) if b.chance() else b.input(2, 5)
    y = b.put(Div(top, root, activation=b.activation()))
    y = b.put(Div(b.number(1), b.put(Sqrt(x)))) if b.chance() else b.put(Mul(y, root))
    return b.put(Add(y, b.put(Pow(x, b.number(float(b.pick(2, 3)))))))


@pattern(
    *("transform_min_max_to_relu6", "transform_min_relu_to_relu6", "transform_max_to_relu"),
    "fuse_leaky_relu",
)
def clamps(b: Builder) -> Value:
    x = b.put(Mul(image(b), b.number(5)))
    low, high = ((0, 6), (-1, 1), (0, 1), (0, 5))[b.pick(0, 1, 2, 3)]
    if b.chance():
        x = b.either(Minimum, b.either(Maximum, x, b.number(low)), b.number(high))
    else:
        x = b.either(Maximum, b.either(Minimum, x, b.number(high)), b.number(low))
    y = b.put(Add(x, b.number(-2)))
    y = (
        b.either(Minimum, b.put(Relu(y)), b.number(6))
        if b.chance()
        else b.put(Relu(b.put(Minimum(y, b.number(6)))))
    )
    y = b.put(Add(y, b.number(-0.5)))
    return b.either(Maximum, y, b.either(Mul, y, b.number((0.1, 0.3, 1.5)[b.pick(0, 1, 2)])))


@pattern("replace_non_const_fc_with_batch_matmul", "decompose_softmax", "decompose_hardswish")
def targets(b: Builder) -> Value:
    x, w = b.input(1, 3, 5) if b.chance() else b.input(3, 5), b.put(Abs(b.input(4, 5)))
    bias = b.normal(4) if b.chance() else None
    y = b.put(FullyConnected(x, w, bias, activation=b.activation(), keep_num_dims=b.chance()))
    y = b.put(HardSwish(b.put(Mul(y, b.number(2)))))
    y = b.put(BatchMatMul(y, b.normal(4, 4)))
    return b.put(Softmax(y, beta=(1.0, 0.5)[b.pick(0, 1)]))


@pattern("remove_fakequant", "remove_quantdequant", "remove_redundant_quantize")
def rounded(b: Builder) -> Value:
    x = b.put(FakeQuant(image(b), min=-4.0, max=4.0, num_bits=16))
    for scale in (2**-15, 2**-15):
        codes = b.put(Quantize(x))
        codes.dtype = TensorType.INT16
        codes.quantization = Affine.single(scale * 4, 0, TensorType.INT16).table()
        x = b.put(Dequantize(codes))
    return x


@pattern("common_subexpression_elimination", "remove_duplicate_const", "remove_dead")
def twice(b: Builder) -> Value:
    x, row = b.around(b.input(2, 5)), b.random.normal(0, 1, 5)
    unused = b.put(Exp(x))
    assert unused.dtype == TensorType.FLOAT32, "nothing reads it"
    parts = [b.put(Mul(x, b.constant(row))) for _ in range(2)]
    parts += [b.put(Reshape(part, b.ints(5, 2))) for part in parts]
    for scale in (2**-12, 2**-11, 2**-12):
        codes = b.put(Quantize(parts[0]))
        codes.dtype = TensorType.INT16
        codes.quantization = Affine.single(scale, 0, TensorType.INT16).table()
        x = b.put(Add(x, b.put(Dequantize(codes))))
    same = b.put(Add(parts[2], b.put(Mul(parts[3], b.put(Reshape(x, b.ints(5, 2)))))))
    return b.put(Mul(same, b.put(Rsqrt(b.put(Add(b.put(Abs(same)), b.number(1)))))))


@pattern("remove_gather_guard")
def guarded(b: Builder) -> Value:
    x = b.around(b.input(6, 2))
    moved = b.put(Add(b.ints(0, 5, 3), b.ints(b.pick(6, 5))))
    return b.put(Gather(x, b.put(FloorMod(moved, b.ints(6)))))


@pattern("fold_fully_connected", "fold_dwconv", "fold_dequantize")
def folded(b: Builder) -> Value:
    x = b.input(1, 4, 4, 3)
    row = b.put(FullyConnected(b.normal(1, 5), b.normal(3, 5), b.normal(3)))
    plane = DepthwiseConv2D(b.normal(1, 4, 4, 3), b.normal(1, 2, 2, 3), stride_w=1, stride_h=1)
    codes = b.graph.add_constant("codes", b.random.integers(-9, 9, 3).astype(np.int8))
    codes.quantization = Affine.single(0.1, 0, TensorType.INT8).table()
    plane.depth_multiplier = 1
    x = b.put(Add(b.put(Mul(x, row)), b.put(plane)))
    return b.put(Mul(x, b.put(Dequantize(codes))))


@pattern("fold_shape", "fold_constants", "infer_shapes", "infer_dtypes", "fold_gather")
def known(b: Builder) -> Value:
    x = b.input(2, 6)
    x = b.put(Mul(x, b.put(Gather(b.normal(9), b.ints(8, 0, 3, 3, 1, 2)))))
    shape = b.put(Shape(x, out_type=TensorType.INT32))
    return b.put(Reshape(b.put(Mul(x, b.put(Add(b.normal(6), b.normal(1))))), shape))
