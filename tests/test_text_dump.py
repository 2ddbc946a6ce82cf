"""circle-dump's text is that of Samsung ONE's circledump."""

from __future__ import annotations

import numpy as np
import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import OPS, Graph, TensorType, Value
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.text.listing import dump
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import (
    BuiltinOperator,
    DimensionType,
)
from luciole.schema.tables import (
    DimensionMetadata,
    MXQuantization,
    QuantizationParameters,
    SparsityParameters,
    Uint8Vector,
)
from tests.text_support import (
    DOUBLE_RULE,
    LEGEND,
    OPERATORS,
    RULE,
    conv_model,
    expected,
    f32,
    lines,
    one_graph,
    u8,
)


def test_dump_is_laid_out_as_circledump() -> None:
    quantization = "    Quantization: "
    indent = " " * len(quantization)
    text = (
        f"Dump: model.circle\n\n{DOUBLE_RULE}Model version: 0\n # sub graphs: 1\n\n"
        "Operator Codes: [order] OpCodeName (OpCode Enum)\n"
        "[0] CONV_2D (code: 3, dep_code: 3, version: 3)\n\n"
        "Buffers: B(index) (length) values, if any; (length *) for ext_offset\n"
        "B(0) (0)␣\n"
        "B(1) (8) 0xfc 0xfd 0xfe 0xff 00 0x1 0x2 0x3 ...\n\n"
        "SignatureDef\n"
        "S(0) signature_key(serve), sub_graph(0)\n"
        "    I(0) T(0:0) in\n"
        "    O(0) T(0:2) out\n\n"
        f"{RULE}Sub-Graph: #0 main\n\n{LEGEND}"
        "T(0:0) FLOAT32 (1, 4, 4, 1) (-1, 4, 4, 1) B(0) image\n"
        f"{quantization}min(-1) max(1) scale(0.00787402) zeropt(0) quantized_dimension(0)\n\n"
        "T(0:1) INT8 (2, 2, 2, 1) B(1) kernel\n"
        f"{quantization}scale(0.5, 0.25)␣\n"
        f"{indent}zeropt(0, 0)␣\n"
        f"{indent}quantized_dimension(0)\n\n"
        "T(0:2) FLOAT32 (1, 3, 2, 2) (-1, 3, 2, 2) B(0) features\n\n"
        f"{OPERATORS}"
        "O(0:0) CONV_2D␣\n"
        "    Padding(VALID) Stride.W(2) Stride.H(1) Dilation.W(1) Dilation.H(1) "
        "Activation(RELU6)␣\n"
        "    I T(0:0) image\n"
        "    I T(0:1) kernel\n"
        "    O T(0:2) features\n\n"
        "Inputs/Outputs: I(input)/O(output) T(tensor index) OperandName\n"
        "I T(0:0) image\n"
        "O T(0:2) features\n\n"
        f"{DOUBLE_RULE}\n"
    )
    assert dump(conv_model(), "model.circle") == expected(text)


def test_dump_of_a_tflite_file_has_its_model_version() -> None:
    assert "\nModel version: 3\n" in dump(conv_model(), "model.tflite", TFLITE)


def test_dump_numbers_graphs_tensors_and_codes() -> None:
    model, first = one_graph()
    second = model.add_graph(Graph())
    for graph, name in ((first, "a"), (second, "")):
        op = graph.append(Abs(graph.add_input(name, (2,))), f"{name}y")
        graph.outputs = [op.output]
    second.ops[0].version = 2
    text = dump(model, "m")
    assert "[0] ABS (code: 101, dep_code: 101, version: 1)" in text
    assert "[1] ABS (code: 101, dep_code: 101, version: 2)" in text
    assert "\nSub-Graph: #1 (noname)\n" in text
    assert "\nO(1:0) ABS \n    I T(1:0) (noname)\n    O T(1:1) y\n" in text


def test_dump_shows_absent_operands_variables_and_shared_buffers() -> None:
    model, graph = one_graph()
    x = graph.add_input("x", (1, 2))
    weights = graph.add_constant("w", np.ones((1, 2), np.float32))
    state = graph.add_value(Value("s", TensorType.FLOAT32, (1, 2), weights.buffer))
    state.is_variable = True
    graph.append(FullyConnected(x, weights, None), "y")
    text = dump(model, "m")
    assert "\n    I T(0:1) w\n    I T(0:-1) \n    O T(0:3) y\n" in text
    assert "\nT(0:2) FLOAT32 (1, 2) B(1) (variable) s\n" in text


def test_dump_shortens_vectors_and_breaks_after_each() -> None:
    model, graph = one_graph()
    x = graph.add_input("x", (5,))
    many = f32(0, 1e-7, 12345678, np.inf, np.nan)
    x.quantization = QuantizationParameters(min=many, max=-many[:2], quantized_dimension=3)
    assert lines(model, "T(0:0)")[1:] == [
        "    Quantization: min((5) 0, 1e-07, 1.23457e+07, inf ... ) ",
        "                  max(-0, -1e-07) ",
        "                  quantized_dimension(3)",
    ]


def test_dump_leaves_out_quantization_that_says_nothing() -> None:
    model, graph = one_graph()
    graph.add_input("x", (5,)).quantization = QuantizationParameters(scale=f32(1))
    assert lines(model, "T(0:0)") == ["T(0:0) FLOAT32 (5) B(0) x"]


def test_dump_shows_microscaling() -> None:
    model, graph = one_graph()
    x = graph.add_input("x", (32,), TensorType.MXINT8)
    x.quantization = QuantizationParameters(details=MXQuantization(axis=-1))
    text = dump(model, "m")
    assert "\nT(0:0) MXINT8 (32) B(0) x\n    MX Quantization: axis (-1)\n\n\nOperators" in text


def test_dump_lays_out_sparsity_as_circledump() -> None:
    model, graph = one_graph()
    dimensions = [
        DimensionMetadata(format=DimensionType.DENSE, dense_size=4),
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=Uint8Vector(values=u8(0, 2, 3, 3, 4)),
            array_indices=Uint8Vector(values=u8(1, 2)),
        ),
    ]
    graph.add_input("x", (4, 4)).sparsity = SparsityParameters(
        traversal_order=np.arange(2, dtype=np.int32), dim_metadata=dimensions
    )
    text = """\
    Sparsity: traversal_order(0, 1)␣
              dim_metadata[0]: format(DENSE)␣
                               dense_size(4)␣
                               array_segments_type(NONE)␣
                               array_segments()
                               array_indices_type(NONE)␣
                               array_indices()
              dim_metadata[1]: format(SPARSE_CSR)␣
                               dense_size(0)␣
                               array_segments_type(Uint8Vector)␣
                               array_segments((5) 0, 2, 3, 3 ...␣)
                               array_indices_type(Uint8Vector)␣
                               array_indices(1, 2)
"""
    closing = " " * len("    Sparsity: ")
    assert expected(f"B(0) x\n{text}{closing}\nOperators") in dump(model, "m")


# ---------------------------------------------------------------------------------- options

ONE_OPTIONS = {
    "ADD": "Activation",
    "ARG_MAX": "OutputType",
    "ARG_MIN": "OutputType",
    "AVERAGE_POOL_2D": "Padding Stride.W Stride.H Filter.W Filter.H Activation",
    "BATCH_MATMUL": "adjoint_lhs adjoint_rhs",
    "BCQ_FULLY_CONNECTED": "Activation weights_hidden_size",
    "BCQ_GATHER": "axis weights_hidden_size",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "Activation cell_clip proj_clip time_major "
    "asymmetric_quantize_inputs merge_outputs",
    "CAST": "in_data_type out_data_type",
    "CONCATENATION": "Activation Axis",
    "CONV_2D": "Padding Stride.W Stride.H Dilation.W Dilation.H Activation",
    "DEPTHWISE_CONV_2D": "Padding Stride.W Stride.H DepthMultiplier Dilation.W Dilation.H "
    "Activation",
    "DEPTH_TO_SPACE": "BlockSize",
    "DIV": "Activation",
    "FAKE_QUANT": "Min Max NumBits NarrowRange",
    "FULLY_CONNECTED": "WeightFormat Activation keep_num_dims",
    "GATHER": "Axis",
    "GELU": "approximate",
    "IF": "then_subgraph_index else_subgraph_index",
    "INSTANCE_NORM": "epsilon Activation",
    "L2_NORMALIZATION": "Activation",
    "L2_POOL_2D": "Padding Stride.W Stride.H Filter.W Filter.H Activation",
    "LEAKY_RELU": "alpha",
    "LOCAL_RESPONSE_NORMALIZATION": "radius bias alpha beta",
    "MAX_POOL_2D": "Padding Stride.W Stride.H Filter.W Filter.H Activation",
    "MIRROR_PAD": "mode",
    "MUL": "Activation",
    "ONE_HOT": "Axis",
    "PACK": "ValuesCount Axis",
    "REDUCE_ANY": "keep_dims",
    "REDUCE_MAX": "keep_dims",
    "REDUCE_MIN": "keep_dims",
    "REDUCE_PROD": "keep_dims",
    "RESHAPE": "NewShape",
    "RESIZE_BILINEAR": "align_corners half_pixel_centers",
    "RESIZE_NEAREST_NEIGHBOR": "align_corners",
    "REVERSE_SEQUENCE": "seq_dim batch_dim",
    "SHAPE": "out_type",
    "SOFTMAX": "Beta",
    "SPACE_TO_DEPTH": "BlockSize",
    "SPARSE_TO_DENSE": "ValidateIndices",
    "SPLIT": "num_splits",
    "SPLIT_V": "num_splits",
    "SQUEEZE": "SqueezeDims",
    "STRIDED_SLICE": "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
    "SUB": "Activation",
    "SUM": "keep_dims",
    "SVDF": "rank activation asymmetric_quantize_inputs",
    "TRANSPOSE_CONV": "Padding Stride.W Stride.H Activation",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "Activation cell_clip proj_clip time_major "
    "asymmetric_quantize_inputs",
    "UNIQUE": "idx_out_type",
    "WHILE": "cond_subgraph_index body_subgraph_index",
}
"""What ONE prints for each operator: compiler/circledump/src/OpPrinter.cpp, labels in order."""

"""Definitions that do not have ONE's labels yet."""


@pytest.mark.parametrize("name", sorted(ONE_OPTIONS.keys() & {code.name for code in OPS}))
def test_definitions_have_the_labels_of_circledump_in_its_order(name: str) -> None:
    labels = [f.dump for f in OPS[BuiltinOperator[name]].attr_fields() if f.dump is not None]
    assert " ".join(labels) == ONE_OPTIONS[name]


def test_dump_shows_what_one_does_not_print_when_it_is_not_the_default() -> None:
    model = conv_model()
    model.graph.ops[0].quantized_bias_type = TensorType.INT64  # type: ignore[attr-defined]  # Conv2D
    assert lines(model, "O(0:0)")[1].endswith(" quantized_bias_type(INT64) ")


def test_dump_has_no_option_line_where_the_file_has_no_options() -> None:
    model = conv_model()
    op = model.graph.ops[0]
    op.has_options = False
    assert lines(model, "O(0:0)")[1].startswith("    Padding(VALID) "), "kept: it would be lost"
    for field in op.attr_fields():
        setattr(op, field.name, field.default)
    assert lines(model, "O(0:0)")[1] == "    I T(0:0) image"
    op.has_options = True
    assert lines(model, "O(0:0)")[1].startswith("    Padding(SAME) Stride.W(0) ")
