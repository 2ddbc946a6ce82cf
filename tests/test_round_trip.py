"""What is read is what is written: real models and a made-up one, through both formats."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.ir import Buffer, GraphError, TensorType, UnknownOp
from luciole.ir.ops.conv_2d import Conv2D
from luciole.schema import opcodes, tables
from luciole.schema.dialect import CIRCLE, DIALECTS, TFLITE, Dialect
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError
from luciole.schema.reader import read
from luciole.schema.writer import write
from tests.round_trip_support import imported
from tests.samples import ints, octets, whole_model
from tests.support import data_path

MODELS = (
    *("ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8", "mnist_lstm_fp32"),
    *("resnet8_fp32", "resnet8_int8", "vww_96_fp32", "vww_96_int8"),
)
every_model = pytest.mark.parametrize("name", MODELS)
both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def original(name: str) -> bytes:
    return data_path(f"models/{name}.tflite").read_bytes()


def normalized(root: tables.Model) -> tables.Model:
    """The tables as luciole writes them: both code fields filled, codes in order of first use."""
    codes, order = root.operator_codes or [], dict[int, int]()
    for operator in (o for g in root.subgraphs or [] for o in g.operators or []):
        operator.opcode_index = order.setdefault(operator.opcode_index, len(order))
    root.operator_codes = [codes[old] for old in order]
    for code in root.operator_codes:
        code.builtin_code = BuiltinOperator(opcodes.resolve(code))
        code.deprecated_builtin_code = min(int(code.builtin_code), 127)
    return root


def tables_of(content: bytes) -> tables.Model:
    root, unknown = read(content)
    assert unknown == []
    return root


# -------------------------------------------------------------------------------- real models
@every_model
def test_tflite_tables_come_back(name: str) -> None:
    content = original(name)
    written = tables_of(to_bytes(from_bytes(content), "tflite"))
    assert written == normalized(tables_of(content))


@every_model
def test_circle_tables_come_back(name: str) -> None:
    content = to_bytes(from_bytes(original(name)))
    root = tables_of(content)
    assert tables_of(to_bytes(from_bytes(content))) == root
    root.version = TFLITE.model_version
    assert root == normalized(tables_of(original(name)))


@every_model
def test_the_way_through_circle_changes_no_byte(name: str) -> None:
    model = from_bytes(original(name))
    through_circle = from_bytes(to_bytes(model, "circle"))
    assert to_bytes(through_circle, "tflite") == to_bytes(model, "tflite")


@every_model
def test_reading_and_writing_twice_changes_no_byte(name: str) -> None:
    for format in ("circle", "tflite"):
        content = to_bytes(from_bytes(original(name)), format)
        assert to_bytes(from_bytes(content), format) == content


@every_model
def test_a_clone_is_written_as_the_same_bytes(name: str) -> None:
    model = from_bytes(original(name))
    content = to_bytes(model)
    copy = model.clone()
    assert to_bytes(copy) == content
    for op in copy.graph.ops:
        op.version += 1
    assert to_bytes(model) == content


# ------------------------------------------------------------------------------ a made-up model


@both
def test_everything_a_file_holds_comes_back(dialect: Dialect) -> None:
    expected = normalized(whole_model())
    expected.version = dialect.model_version
    content = to_bytes(imported(dialect), dialect.name)
    assert tables_of(content) == expected
    assert to_bytes(from_bytes(content), dialect.name) == content


def test_a_clone_of_everything_is_written_as_the_same_bytes() -> None:
    model = imported()
    assert to_bytes(model.clone()) == to_bytes(model)


def test_operators_keep_what_is_around_their_options() -> None:
    conv, custom, newer = imported().graph.ops
    assert isinstance(conv, Conv2D)
    assert (conv.version, custom.version, newer.version) == (5, 7, 1)
    assert [v.name for v in conv.intermediates] == ["inner"]
    assert (conv.debug_metadata_index, custom.debug_metadata_index) == (2, -1)
    assert conv.operands[2] is conv.bias is None
    assert isinstance(custom, UnknownOp)
    assert custom.kind == "CUSTOM(Mine)"
    assert custom.custom_options.tolist() == [9, 8, 7]
    assert custom.mutating_variable_inputs == (False, True, *[False] * 5)
    assert [v.name if v else None for v in custom.operands][1:4] == ["state", None, "sparse"]
    assert isinstance(newer, UnknownOp)
    assert newer.kind == "STABLEHLO_TRANSPOSE"
    assert isinstance(newer.options_2, tables.StablehloTransposeOptions)


def test_tensors_keep_what_is_around_their_shape() -> None:
    values = {v.name: v for v in imported().graph.values}
    assert values["in"].shape == (None, 4, 4, 2)
    assert values["in"].dims == (1, 4, 4, 2)
    assert (values["in"].has_rank, values["out"].has_rank) == (True, False)
    assert (values["state"].is_variable, values["out"].is_variable) == (True, False)
    blocks, sparse, variant = values["blocks"], values["sparse"], values["variant"]
    assert blocks.buffer is values["twice"].buffer
    assert blocks.data is not None
    assert blocks.data.tolist() == [[1, 2], [3, 4]]
    assert blocks.quantization is not None
    assert isinstance(blocks.quantization.details, tables.BlockwiseQuantization)
    assert blocks.quantization.details.block_size == 2
    assert sparse.data is None
    assert sparse.sparsity is not None
    assert isinstance(sparse.quantization, tables.QuantizationParameters)
    assert isinstance(sparse.quantization.details, tables.CustomQuantization)
    assert variant.variant_tensors == [tables.VariantSubType(shape=ints(2), type=TensorType.INT8)]


def test_models_keep_what_is_around_their_graphs() -> None:
    model = imported()
    main, second = model.graphs
    assert (main.name, second.name) == ("main", "2nd")
    assert (main.debug_metadata_index, second.debug_metadata_index) == (4, -1)
    assert model.description == "made by hand"
    ((name, buffer),) = model.metadata
    assert name == "min_runtime_version"
    assert np.array_equal(buffer.data, octets(*b"1.5.0"))  # type: ignore[arg-type]  # there is data
    assert model.metadata_buffers == [model.buffers[7]]
    serve, other = model.signatures
    assert (serve.key, serve.graph, other.key, other.graph) == ("serve", main, "other", second)
    assert serve.inputs == [("x", main.values[0])]
    assert serve.outputs == [("y", main.values[2])]


def test_buffers_and_codes_nobody_uses() -> None:
    root = whole_model()
    (root.operator_codes or []).append(tables.OperatorCode(deprecated_builtin_code=9))
    (root.buffers or []).append(tables.Buffer(data=octets(1, 2, 3)))
    written = tables_of(to_bytes(from_bytes(write(root, TFLITE)), "tflite"))
    assert len(written.operator_codes or []) == 3
    assert written.buffers == root.buffers


def test_names_that_are_not_utf_8_come_back() -> None:
    root = whole_model()
    name = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    (root.subgraphs or [])[0].tensors[0].name = name  # type: ignore[index]  # there is one
    root.version = CIRCLE.model_version
    again = to_bytes(from_bytes(write(root, CIRCLE)))
    assert b"caf\xe9 \xff\0" in again
    assert tables_of(again) == normalized(root)


def with_operator(**fields: Any) -> tables.Model:
    root = whole_model()
    vars((root.subgraphs or [])[0].operators[1]).update(fields)  # type: ignore[index]  # there is one
    return root


def test_custom_options_behind_the_tables_move_into_them() -> None:
    root = with_operator(
        custom_options=None, large_custom_options_offset=2**20, large_custom_options_size=3
    )
    content = write(root, TFLITE).ljust(2**20, b"\0") + b"\x09\x08\x07"
    written = tables_of(to_bytes(from_bytes(content), "tflite"))
    assert written == normalized(whole_model())


def test_importing_refuses_custom_options_outside_the_file() -> None:
    root = with_operator(large_custom_options_offset=2**40, large_custom_options_size=3)
    message = "operators[1].custom_options: its bytes end at byte 1099511627779, the file has"
    with pytest.raises(FormatError, match=re.escape(message)):
        from_bytes(write(root, TFLITE))


def test_importing_refuses_custom_options_that_very_many_share() -> None:
    root = with_operator(large_custom_options_offset=16, large_custom_options_size=1 << 14)
    graph = (root.subgraphs or [])[0]
    operators = graph.operators or []
    operators[1].outputs = None
    graph.operators = [*operators, *[operators[1]] * 50]
    content = write(root, TFLITE).ljust(1 << 15, b"\0")
    assert "BYTES" not in {finding.code for finding in import_model(content)[1]}
    graph.operators = [*operators, *[operators[1]] * 100]
    _, findings = import_model(write(root, TFLITE).ljust(1 << 15, b"\0"))
    said = [f.sentence for f in findings if f.code == "BYTES"]
    assert said[0].startswith("custom options come to more bytes than a file of ")


@both
def test_numbers_without_a_meaning_come_back(dialect: Dialect) -> None:
    root = with_operator(custom_options_format=5)
    operator = (root.subgraphs or [])[0].operators[0]  # type: ignore[index]  # there is one
    operator.builtin_options = tables.Conv2DOptions(padding=77, stride_w=1, stride_h=1)  # type: ignore[arg-type]  # that is it
    model = from_bytes(write(root, dialect))
    assert isinstance(model.graph.ops[0], UnknownOp)
    written = tables_of(to_bytes(model, dialect.name))
    root.version = dialect.model_version
    assert written == normalized(root)


def test_a_model_without_buffers_gets_the_empty_one() -> None:
    model = imported()
    model.buffers = []
    again = from_bytes(to_bytes(model))
    assert len(again.buffers[0]) == 0
    assert again.graph.values[1].data is not None


def test_a_buffer_that_is_new_is_written_once() -> None:
    model = imported()
    shared = Buffer(octets(5, 6))
    for value in model.graph.values:
        if value.dtype is TensorType.INT4:
            value.buffer = shared
    buffers = tables_of(to_bytes(model)).buffers or []
    assert [b.data.tolist() for b in buffers[9:] if b.data is not None] == [[5, 6]]


def test_loading_refuses_a_constant_of_the_wrong_size() -> None:
    root = whole_model()
    (root.buffers or [])[2].data = octets(1)
    with pytest.raises(FormatError, match="BUFFER_SIZE"):
        from_bytes(write(root, TFLITE))
    model, _ = import_model(write(root, TFLITE))
    with pytest.raises(GraphError, match="takes 4 bytes, its buffer has 1"):
        _ = model.graph.values[1].data
