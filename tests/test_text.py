"""Models as text: ONE's layout line by line, JSON, and one line per operator."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.importers import from_bytes
from luciole.ir import OPS, Buffer, Graph, Model, Signature, TensorType, UnknownOp, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.text import describe, dump, show, show_op
from luciole.ir.text_common import plain
from luciole.ir.text_flexbuffer import read_map, value_text
from luciole.schema import opcodes
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    CustomOptionsFormat,
    DimensionType,
    Padding,
)
from luciole.schema.reader import read
from luciole.schema.tables import (
    DimensionMetadata,
    MXQuantization,
    QuantizationParameters,
    SparsityParameters,
    Uint8Vector,
    VarHandleOptions,
)
from tests.support import data_path

BLANK = "␣"
"""Stands for a blank at a line's end in expected texts."""

LEGEND = """\
Operands: T(subgraph index : tensor index) TYPE (shape) (shape_signature) \
B(buffer index) (variable) OperandName
"""
OPERATORS = """\
Operators: O(subgraph index : operator index) OpCodeName␣
    Option(values) ... <-- depending on OpCode
    I T(tensor index) OperandName <-- as input
    O T(tensor index) OperandName <-- as output
"""
DOUBLE_RULE = "=" * 67 + "\n"
RULE = "-" * 67 + "\n"


def expected(text: str) -> str:
    return text.replace(BLANK, " ")


def f32(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def u8(*numbers: int) -> NDArray[np.uint8]:
    return np.array(numbers, np.uint8)


def one_graph() -> tuple[Model, Graph]:
    model = Model()
    return model, model.add_graph(Graph("main"))


def conv_model() -> Model:
    """A convolution with an unknown batch, quantized at its borders, that a signature calls."""
    model, graph = one_graph()
    model.description = "made by a test"
    x = graph.add_input("image", (None, 4, 4, 1))
    x.quantization = QuantizationParameters(
        min=f32(-1),
        max=f32(1),
        scale=f32(1 / 127),
        zero_point=np.zeros(1, np.int64),
    )
    kernel = graph.add_constant("kernel", np.arange(-4, 4, dtype=np.int8).reshape(2, 2, 2, 1))
    kernel.quantization = QuantizationParameters(
        scale=f32(0.5, 0.25), zero_point=np.zeros(2, np.int64), quantized_dimension=0
    )
    op = Conv2D(x, kernel, padding=Padding.VALID, stride_w=2, stride_h=1)
    op.activation = ActivationFunctionType.RELU6
    op.version = 3
    graph.append(op, "features")
    graph.outputs = [op.output]
    model.signatures.append(Signature("serve", graph, [("in", x)], [("out", op.output)]))
    return model


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


def lines(model: Model, start: str) -> list[str]:
    """The lines from the one that starts so up to the next empty one."""
    found = dump(model, "m").split("\n")
    first = next(i for i, line in enumerate(found) if line.startswith(start))
    return found[first : found.index("", first)]


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


def custom(options: bytes | None, **given: Any) -> Model:
    model, graph = one_graph()
    data = None if options is None else np.frombuffer(options, np.uint8)
    op = UnknownOp(
        BuiltinOperator.CUSTOM,
        [graph.add_input("x", (1,))],
        custom_code="Magic",
        custom_options=data,
        **given,
    )
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (1,)))])
    return model


def test_dump_shows_custom_options() -> None:
    model = custom(bytes(flexbuffers.Dumps({"n": -3, "scale": 0.5, "mode": "a\nb", "on": True})))
    assert lines(model, "[0]") == ["[0] CUSTOM(Magic) (code: 32, dep_code: 32, version: 1)"]
    assert lines(model, "O(0:0)") == [
        "O(0:0) CUSTOM(Magic) ",
        "    mode(a\\nb) n(-3) on(true) scale(0.5) ",
        "    I T(0:0) x",
        "    O T(0:1) y",
    ]


def test_dump_shows_the_bytes_of_custom_options_that_are_no_map() -> None:
    assert lines(custom(b"\x07\xff"), "O(0:0)")[1] == "    custom_options (2) 0x7 0xff"
    assert lines(custom(None), "O(0:0)")[1] == "No attrs found."
    other = custom(b"\x07", custom_options_format=CustomOptionsFormat.FLEXBUFFERS + 1)
    assert lines(other, "O(0:0)")[1] == "    Unknown custom option format"


def test_dump_shows_the_options_of_operators_without_a_class() -> None:
    model, graph = one_graph()
    table = VarHandleOptions(container="", shared_name="a\tb")
    graph.append(UnknownOp(BuiltinOperator.VAR_HANDLE, options_table=table), results=[])
    graph.append(UnknownOp(9999), results=[])
    assert lines(model, "[0]") == [
        "[0] VAR_HANDLE (code: 142, dep_code: 127, version: 1)",
        "[1] (invalid) (code: 9999, dep_code: 127, version: 1)",
    ]
    assert lines(model, "O(0:0)") == [
        "O(0:0) VAR_HANDLE ",
        "    container() shared_name(a\\tb) ",
        "O(0:1) (invalid: 1) ",
    ]


# --------------------------------------------------------------------------------- metadata


def source_table(entries: dict[int, bytes]) -> bytes:
    packed = (struct.pack("<II", i, len(n) + 1) + n + b"\0" for i, n in entries.items())
    return struct.pack("<I", len(entries)) + b"".join(packed)


def op_table(entries: dict[int, list[int]]) -> bytes:
    packed = (struct.pack(f"<II{len(o)}I", i, len(o), *o) for i, o in entries.items())
    return struct.pack("<I", len(entries)) + b"".join(packed)


def with_metadata(**entries: bytes) -> Model:
    model, _ = one_graph()
    for name, raw in entries.items():
        model.metadata.append((name, Buffer(np.frombuffer(raw, np.uint8))))
    return model


def test_dump_decodes_the_tables_of_one() -> None:
    model = with_metadata(
        ONE_source_table=source_table({0: b"conv", 7: b"re\nlu\xff"}),
        ONE_op_table=op_table({0: [0, 7]}),
        min_runtime_version=b"1.5.0",
    )
    assert lines(model, "metadata") == [
        "metadata : B(index) name",
        "B(1) ONE_source_table",
        "    [node_id : node_name]",
        "    [0 : conv]",
        "    [7 : re\\nlu\\xff]",
        "B(2) ONE_op_table",
        "    [node_id : origin_ids]",
        "    [0 : 0, 7]",
        "B(3) min_runtime_version",
    ]
    assert describe(model)["metadata"][1] == {
        "name": "ONE_op_table",
        "buffer": 2,
        "table": [[0, [0, 7]]],
    }


@pytest.mark.parametrize("name", ["ONE_source_table", "ONE_op_table"])
def test_dump_shows_the_bytes_of_damaged_tables(name: str) -> None:
    raw = (
        source_table({1: b"a", 2: b"b"})
        if name == "ONE_source_table"
        else op_table({1: [2], 3: [4]})
    )
    for size in range(1, len(raw)):
        found = lines(with_metadata(**{name: raw[:size]}), "metadata")
        assert found[2].startswith(f"    damaged ({size}) "), size
    huge = struct.pack("<III", 0xFFFFFFFF, 0, 0xFFFFFFFF)
    assert lines(with_metadata(**{name: huge}), "metadata")[2].startswith("    damaged (12) ")
    assert describe(with_metadata(**{name: huge}))["metadata"][0]["table"] is None


# ------------------------------------------------------------------------------ FlexBuffers


def every_kind() -> bytes:
    """A map with a value of every kind that the builder makes."""
    b = flexbuffers.Builder()
    with b.Map():
        b.String("text", 'a"b\\\n\x1f\x7fé\U0001f600')
        b.Int("int", -3)
        b.UInt("uint", 300)
        b.Float("float", 0.1)
        b.Bool("bool", True)
        b.Key("null")
        b.Null()
        b.Key("vector")
        with b.Vector():
            b.Int(1)
            b.String("x")
            b.Bool(False)
        b.Key("map")
        with b.Map():
            b.Int("z", 1)
            b.String("y", "q")
        b.Key("empty")
        with b.Vector():
            pass
        for key, numbers in {
            "typed": [1, 2, 300],
            "bools": [True, False],
            "floats": [1.5, -2.0],
        }.items():
            b.Key(key)
            b.TypedVectorFromElements(numbers)
        b.Key("fixed")
        b.FixedTypedVectorFromElements([1.5, 2.5, 3.0])
        b.Key("blob")
        b.Blob(b"\x00\x01\xff")
        b.Key("indirect")
        b.IndirectInt(7)
        for key, number in {"large": 1e30, "inf": float("inf"), "tiny": 1e-20}.items():
            b.Float(key, number)
    return bytes(b.Finish())


def test_flexbuffers_decode_as_the_library_decodes_them() -> None:
    assert read_map(every_kind()) == flexbuffers.Loads(every_kind())
    assert read_map(bytes(flexbuffers.Dumps([1, 2]))) is None


def test_flexbuffer_text_is_that_of_flatc(tmp_path: Path) -> None:
    (tmp_path / "t.fbs").write_text("table T { d:[ubyte](flexbuffer); } root_type T;")
    builder = flatbuffers.Builder(0)
    vector = builder.CreateByteVector(every_kind())
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    builder.Finish(builder.EndObject())
    (tmp_path / "t.bin").write_bytes(bytes(builder.Output()))
    command = ["flatc", "--json", "--raw-binary", "t.fbs", "--", "t.bin"]
    try:
        subprocess.run(command, cwd=tmp_path, check=True)
    except FileNotFoundError:
        pytest.skip("needs flatc: Debian's flatbuffers-compiler")
    assert f"d: {value_text(read_map(every_kind()))}\n" in (tmp_path / "t.json").read_text()


def test_damaged_flexbuffers_never_break_a_dump() -> None:
    raw = every_kind()
    for size in range(len(raw)):
        dump(custom(raw[:size]), "m")
    for place in range(len(raw)):
        for value in (0, 0xFF, raw[place] ^ 1, raw[place] ^ 0x80):
            damaged = raw[:place] + bytes([value]) + raw[place + 1 :]
            line = lines(custom(damaged), "O(0:0)")[1]
            assert line.isprintable()
            json.dumps(describe(custom(damaged)), allow_nan=False)


def test_flexbuffers_cannot_blow_up() -> None:
    """Twenty vectors, each with the one before it as all of its ten elements."""
    level = 1 + 2 * 10
    raw = bytes([0])
    for _ in range(20):
        slots = bytes(len(raw[-level:]) - 1 + 1 + i if len(raw) > 1 else 1 + i for i in range(10))
        raw += bytes([10]) + slots + bytes([10 << 2] * 10)
    raw += bytes([2 * 10]) + bytes([10 << 2, 1])
    assert read_map(raw) is None


# ------------------------------------------------------------------------------------- names

HOSTILE = [
    "two\nlines",
    "\r\x0b\x0c\x1c\x85\u2028\u2029",
    "\x1b[31mred\x1b[0m\x00",
    "\u202ereversed",
    "\udcff\udc80",
    "\ud800",
    "x" * 100_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_on_their_line(name: str) -> None:
    def model(name: str) -> Model:
        model, graph = one_graph()
        graph.name = name
        x = graph.add_input(name, (1,))
        op = UnknownOp(BuiltinOperator.CUSTOM, [x], custom_code=name)
        graph.append(op, results=[graph.add_value(Value(name, TensorType.FLOAT32, (1,)))])
        model.signatures.append(Signature(name, graph, [(name, x)], []))
        model.metadata.append((name, Buffer()))
        return model

    for text, tame in (
        (dump(model(name), name), dump(model("tame"), "tame")),
        (show(model(name).graph), show(model("tame").graph)),
    ):
        assert text.count("\n") == tame.count("\n") == len(text.splitlines())
        assert all(line.isprintable() and len(line) < 10_000 for line in text.split("\n"))
        text.encode()
    json.dumps(describe(model(name), name), allow_nan=False, ensure_ascii=False).encode()


def test_names_that_print_stand_as_they_are() -> None:
    model, graph = one_graph()
    graph.add_input("größe/日本;a\\b", (1,))
    graph.add_input("a\tb\udcff" + "\n", (1,))
    text = dump(model, "m")
    assert " größe/日本;a\\b\n" in text
    assert " a\\tb\\xff\\n\n" in text
    assert describe(model)["subgraphs"][0]["tensors"][1]["name"] == "a\tb\\xff\n"


# -------------------------------------------------------------------------------------- JSON


def test_describe_says_everything_about_a_small_model() -> None:
    model = conv_model()
    found = describe(model, "model.circle")
    (graph,) = found.pop("subgraphs")
    assert found == {
        "schema_version": 1,
        "file": "model.circle",
        "format": "circle",
        "description": "made by a test",
        "operator_codes": [
            {
                "index": 0,
                "name": "CONV_2D",
                "code": 3,
                "deprecated_code": 3,
                "custom_code": None,
                "version": 3,
            }
        ],
        "buffers": [0, 8],
        "metadata": [],
        "signatures": [
            {
                "key": "serve",
                "subgraph": 0,
                "inputs": [{"name": "in", "tensor": 0}],
                "outputs": [{"name": "out", "tensor": 2}],
            }
        ],
    }
    assert {k: graph[k] for k in ("name", "inputs", "outputs")} == {
        "name": "main",
        "inputs": [0],
        "outputs": [2],
    }
    assert graph["tensors"][1] == {
        "index": 1,
        "name": "kernel",
        "dtype": "INT8",
        "shape": [2, 2, 2, 1],
        "shape_signature": None,
        "buffer": 1,
        "bytes": 8,
        "is_variable": False,
        "quantization": {
            "min": None,
            "max": None,
            "scale": [0.5, 0.25],
            "zero_point": [0, 0],
            "quantized_dimension": 0,
            "details": None,
        },
        "sparsity": None,
        "values": [[[[-4], [-3]], [[-2], [-1]]], [[[0], [1]], [[2], [3]]]],
    }
    assert graph["tensors"][0]["shape_signature"] == [-1, 4, 4, 1]
    (op,) = graph["operators"]
    options = op.pop("options")
    assert op == {
        "index": 0,
        "kind": "CONV_2D",
        "code": 0,
        "version": 3,
        "inputs": [0, 1],
        "outputs": [2],
        "intermediates": [],
    }
    assert options["padding"] == "VALID"
    assert options["fused_activation_function"] == "RELU6"
    assert options["stride_w"] == 2


def test_describe_writes_what_json_has_not_as_text() -> None:
    model, graph = one_graph()
    graph.add_constant("f", f32(np.nan, np.inf, -np.inf, 0.5))
    graph.add_constant("c", np.array([1 + 2j], np.complex64))
    graph.add_constant("long", np.zeros(17, np.int8))
    graph.add_constant("odd", np.zeros(3, np.int8)).shape = (4,)
    graph.add_constant("twice", np.zeros(4, np.int8)).dims = (-2, -2)
    tensors = json.loads(json.dumps(describe(model), allow_nan=False))["subgraphs"][0]["tensors"]
    assert [t["values"] for t in tensors] == [
        ["NaN", "Infinity", "-Infinity", 0.5],
        [[1.0, 2.0]],
        None,
        None,
        None,
    ]


def test_describe_has_custom_options() -> None:
    options = {"n": 1, "nan": float("nan"), "list": [1, 2.5, "x"]}
    described = describe(custom(bytes(flexbuffers.Dumps(options))))
    (op,) = described["subgraphs"][0]["operators"]
    assert op["kind"] == "CUSTOM(Magic)"
    assert op["options"] == {"custom_options": {"list": [1, 2.5, "x"], "n": 1, "nan": "NaN"}}
    (op,) = describe(custom(b"\x07\xff"))["subgraphs"][0]["operators"]
    assert op["options"] == {"custom_options_raw": {"bytes": 2, "hex": "07ff"}}


# ------------------------------------------------------------------------------- show, files


def test_show_is_one_line_per_operator() -> None:
    _, graph = one_graph()
    x = graph.add_input("x", (None, 2))
    weights = graph.add_constant("w", f32(1, -0.5).reshape(1, 2))
    graph.add_constant("unused", np.zeros(3, np.float32))
    big = graph.add_constant("big", np.zeros((1, 9), np.float32))
    dense = graph.append(
        FullyConnected(x, weights, None, activation=ActivationFunctionType.RELU), "y"
    )
    graph.append(Abs(big), "z")
    graph.append(UnknownOp(BuiltinOperator.CUSTOM, [x], custom_code="Magic"), results=[])
    graph.outputs = [dense.output]
    assert show(graph) == (
        "graph 'main'(%0: float32[?,2] 'x') -> (%4)\n"
        "%1: float32[1,2] = constant [[1, -0.5]] 'w'\n"
        "%3: float32[1,9] = constant 'big'\n"
        "%4: float32[?,1] = FULLY_CONNECTED(%0, %1, none) {activation=RELU} 'y'\n"
        "%5: float32[1,9] = ABS(%3) 'z'\n"
        "CUSTOM(Magic)(%0)\n"
    )
    assert show_op(dense) == show(graph).split("\n")[3]
    assert show_op(Abs(x)) == "ABS(%?)"


MODELS = [
    f"{name}_{kind}" for name in ("ad01", "kws", "resnet8", "vww_96") for kind in ("fp32", "int8")
]


@pytest.mark.parametrize("name", [*MODELS, "mnist_lstm_fp32"])
def test_dump_says_of_real_files_what_their_tables_say(name: str) -> None:
    data = data_path(f"models/{name}.tflite").read_bytes()
    root, _ = read(data)
    (table,) = root.subgraphs or []
    operators = table.operators or []
    model = from_bytes(data)
    text = dump(model, name, TFLITE).split("\n")
    assert dump(model.clone(), name, TFLITE).split("\n") == text

    stored = [0 if b.data is None else len(b.data) for b in root.buffers or []]
    sizes = [re.match(r"B\(\d+\) \((\d+)\)", line) for line in text]
    assert [int(found[1]) for found in sizes if found] == stored
    tensors = [line.split(" ")[-1] for line in text if line.startswith("T(0:")]
    assert tensors == [t.name for t in table.tensors or []]
    codes = [BuiltinOperator(opcodes.resolve(code)).name for code in root.operator_codes or []]
    kinds = [line.split(" ")[1] for line in text if line.startswith("O(")]
    assert kinds == [codes[op.opcode_index] for op in operators]
    for letter, ends in (
        ("I", [o.inputs for o in operators]),
        ("O", [o.outputs for o in operators]),
    ):
        found = [re.match(rf"    {letter} T\(0:(-?\d+)\)", line) for line in text]
        assert [int(f[1]) for f in found if f] == [i for end in ends for i in plain(end)]


@pytest.mark.parametrize("name", [*MODELS, "mnist_lstm_fp32"])
def test_other_texts_of_real_files_are_complete(name: str) -> None:
    data = data_path(f"models/{name}.tflite").read_bytes()
    root, _ = read(data)
    (table,) = root.subgraphs or []
    model = from_bytes(data)
    (graph,) = json.loads(json.dumps(describe(model, name), allow_nan=False))["subgraphs"]
    assert [t["buffer"] for t in graph["tensors"]] == [t.buffer for t in table.tensors or []]
    assert [o["code"] for o in graph["operators"]] == [
        o.opcode_index for o in table.operators or []
    ]
    assert [o["inputs"] for o in graph["operators"]] == [
        plain(o.inputs) for o in table.operators or []
    ]
    shown = show(model.graph).splitlines()
    assert shown[-len(model.graph.ops) :] == [show_op(op) for op in model.graph.ops]
