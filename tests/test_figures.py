"""Multiply-accumulates and parameters."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.importers import load
from luciole.ir import Graph, Model, UnknownOp
from luciole.ir.analysis.figures import macs, parameters
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.rnn import UnidirectionalSequenceRNN
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import Padding
from tests.lq_conv_support import random_conv
from tests.lq_support import random_layer
from tests.support import data_path, one_op

MLPERF_TINY = {
    "ad01": (264_192, 265_864),
    "kws": (2_656_768, 22_604),
    "resnet8": (12_501_632, 77_706),
    "vww_96": (7_489_664, 210_850),
}
"""MACs and parameters of the benchmark's four networks (https://arxiv.org/abs/2106.07597), counted
by hand layer by layer, batch normalization folded: ad01 640-128(4)-8-128(4)-640; kws 10x4x64,
4 x (3x3 + 1x1 of 64), 12; resnet8 16, 16-16, 32-32+1x1, 64-64+1x1, 10; vww 8, 13 pairs to 256, 2.
"""


@pytest.mark.parametrize("name", MLPERF_TINY)
@pytest.mark.parametrize("kind", ["fp32", "int8"])
def test_the_figures_of_well_known_networks(name: str, kind: str) -> None:
    graph = load(data_path(f"models/{name}_{kind}.tflite")).graph
    held = {id(v.buffer): n for op in graph.ops for v, n in parameters(op).items()}
    assert (sum(macs(op) or 0 for op in graph.ops), sum(held.values())) == MLPERF_TINY[name]


def test_learned_levels_count_as_the_weights_that_they_stand_for() -> None:
    (op,) = random_layer(40, 5, 2, 3).model(np.zeros((2, 40), np.float32)).graph.ops
    assert macs(op) == 2 * 5 * 40
    assert sorted(parameters(op).values()) in ([5, 200], [200])
    layer = random_conv((3, 2), 5, 4, 2, 3)
    x = np.zeros((1, 6, 6, layer.signs.shape[-1]), np.float32)
    (conv,) = layer.model(x).graph.ops
    o, h, w, c = (layer.signs.shape[i] for i in (0, 2, 3, 4))
    assert macs(conv) == int(np.prod(conv.output.dims)) * h * w * c
    assert o * h * w * c in parameters(conv).values()


def test_matrix_products_and_transposed_convolutions() -> None:
    x, y = np.zeros((3, 7, 2), np.float32), np.zeros((3, 7, 5), np.float32)
    (op,) = one_op(BatchMatMul, [x, y], adjoint_lhs=True).graph.ops
    assert macs(op) == 3 * 2 * 5 * 7
    shape = np.array([1, 8, 8, 4], np.int32)
    kernel, image = np.zeros((4, 3, 3, 2), np.float32), np.zeros((1, 4, 4, 2), np.float32)
    arrays = [shape, kernel, image]
    model = one_op(TransposeConv, arrays, (0, 1), padding=Padding.SAME, stride_w=2, stride_h=2)
    (op,) = model.graph.ops
    assert macs(op) == 4 * 4 * 2 * 4 * 3 * 3, (
        "every input element meets every tap and output channel"
    )
    assert sum(parameters(op).values()) == kernel.size, "the shape is no parameter"


@pytest.mark.parametrize("constant", [True, False])
def test_recurrent_layers_meet_their_constant_matrices_at_every_step(constant: bool) -> None:
    graph = Model().add_graph(Graph("main"))
    x, state = graph.add_input("x", (2, 5, 3)), graph.add_input("state", (2, 4))
    bias = graph.add_constant("bias", np.zeros(4, np.float32))
    shapes = {"weights": (4, 3), "recurrent_weights": (4, 4)}
    weights, recurrent = (
        graph.add_constant(name, np.zeros(shape, np.float32))
        if constant
        else graph.add_input(name, shape)
        for name, shape in shapes.items()
    )
    op = UnidirectionalSequenceRNN(x, weights, recurrent, bias, state)
    graph.append(op, "y")
    assert macs(op) == (2 * 5 * (4 * 3 + 4 * 4) if constant else 0)


def test_transposed_convolutions_of_volumes() -> None:
    shape = np.array([1, 4, 4, 4, 3], np.int32)
    kernel, data = np.zeros((2, 2, 2, 3, 5), np.float32), np.zeros((1, 2, 2, 2, 5), np.float32)
    arrays = [shape, kernel, data]
    model = one_op(Conv3DTranspose, arrays, (0, 1), stride_d=2, stride_h=2, stride_w=2)
    assert macs(model.graph.ops[0]) == 2 * 2 * 2 * 5 * (2 * 2 * 2 * 3)


def test_other_operators_have_no_macs() -> None:
    (op,) = one_op(Abs, [np.zeros(3, np.float32)]).graph.ops
    assert macs(op) is None
    op.results = ()  # a damaged file: verify says so
    assert (macs(op), parameters(op)) == (None, {})
    graph = Model().add_graph(Graph("main"))
    assert macs(UnknownOp(99, [graph.add_input("x", (1,))])) is None
