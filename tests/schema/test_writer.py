"""Tables to bytes: all of them come back, and what a format cannot hold is refused."""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np
import pytest

from luciole.schema import tables
from luciole.schema.dialect import CIRCLE, DIALECTS, TFLITE, Dialect
from luciole.schema.enums import (
    BuiltinOperator,
    CompressionType,
    FullyConnectedOptionsWeightsFormat,
    Padding,
    TensorType,
)
from luciole.schema.errors import FormatError
from luciole.schema.reader import Reader, read
from luciole.schema.table import TABLES, UNIONS, Table
from luciole.schema.writer import Writer, write
from tests.samples import filled, octets, whole_model

both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def there_and_back(table: Table, dialect: Dialect) -> Any:
    builder = flatbuffers.Builder(1024)
    builder.Finish(Writer(builder, dialect).table(table), file_identifier=dialect.identifier)
    reader = Reader(bytes(builder.Output()), dialect)
    found = reader.table(type(table), reader.offset(0))
    assert reader.unknown == []
    return found


CIRCLE_ONLY = {"Tensor", "SubGraph", "Model"}
"""Tables that, filled, hold a field that TFLite lacks: Tensor.compression_type."""


@both
@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_field_of_every_table_comes_back(name: str, dialect: Dialect) -> None:
    table = filled(TABLES[name])
    if dialect is TFLITE and name in CIRCLE_ONLY:
        with pytest.raises(FormatError):
            there_and_back(table, dialect)
        return
    assert there_and_back(table, dialect) == table


@both
@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_without_fields_has_the_defaults(name: str, dialect: Dialect) -> None:
    found = there_and_back(TABLES[name](), dialect)
    assert vars(found) == {}
    assert found == TABLES[name]()


@both
def test_a_whole_model_comes_back(dialect: Dialect) -> None:
    content = write(whole_model(), dialect)
    assert content[4:8] == dialect.identifier
    root, unknown = read(content)
    assert unknown == []
    assert root == whole_model()
    assert write(root, dialect) == content


def test_equality_sees_every_field() -> None:
    for name, cls in TABLES.items():
        for field in cls.fields:
            if field.enum is None or len(field.enum) > 1:
                changed = filled(cls)
                setattr(changed, field.name, field.default)
                assert changed != filled(cls), f"{name}.{field.name}"


def test_a_table_refuses_a_field_it_does_not_have() -> None:
    with pytest.raises(TypeError, match="Buffer has no field colour, dat"):
        tables.Buffer(dat=None, colour=1)  # type: ignore[call-arg]  # what this test is about


@both
@pytest.mark.parametrize("sizes", [(1, 3, 17, 5), (16, 1, 64)])
def test_constants_start_at_multiples_of_16(dialect: Dialect, sizes: tuple[int, ...]) -> None:
    arrays = [np.full(n, 7 + i, np.uint8) for i, n in enumerate(sizes)]
    content = write(tables.Model(buffers=[tables.Buffer(data=a) for a in arrays]), dialect)
    for array in arrays:
        assert content.index(array.tobytes()) % 16 == 0


def test_numbers_that_meant_nothing_when_read_go_back_as_they_came() -> None:
    pool: Any = tables.Pool2DOptions(padding=77)  # type: ignore[arg-type]  # what this test is about
    operator = tables.Operator(builtin_options=pool)
    model = tables.Model(subgraphs=[tables.SubGraph(operators=[operator])])
    content = write(model, CIRCLE)
    assert read(content)[0] == model
    assert write(read(content)[0], CIRCLE) == content


def test_a_member_may_be_given_as_its_number() -> None:
    options = tables.Pool2DOptions(padding=1)  # type: ignore[arg-type]  # what this test is about
    assert there_and_back(options, TFLITE).padding is Padding.VALID


# ----------------------------------------------------------------- what TFLite cannot hold
def tensor_file(**fields: Any) -> tables.Model:
    return tables.Model(subgraphs=[tables.SubGraph(tensors=[tables.Tensor(**fields)])])


def options_file(options: Table) -> tables.Model:
    operator = tables.Operator(builtin_options=options)
    return tables.Model(subgraphs=[tables.SubGraph(operators=[operator])])


CIRCLE_TYPES = [t for t in TensorType if t < TensorType.UINT4]
CIRCLE_OPTIONS = [tag for tag in UNIONS["BuiltinOptions"] if tag >= 190]


@pytest.mark.parametrize("kind", CIRCLE_TYPES, ids=lambda t: t.name)
def test_tflite_refuses_an_element_type_of_circle_by_name(kind: TensorType) -> None:
    model = tensor_file(type=kind)
    assert read(write(model, CIRCLE))[0] == model
    with pytest.raises(FormatError, match=rf"^tflite has no TensorType {kind.name}$"):
        write(model, TFLITE)


def test_uint4_has_a_number_of_its_own_in_each_format() -> None:
    model = tensor_file(type=TensorType.UINT4)
    assert read(write(model, CIRCLE))[0] == read(write(model, TFLITE))[0] == model
    assert write(model, CIRCLE)[8:] != write(model, TFLITE)[8:]


def test_tflite_refuses_compressed_tensors() -> None:
    model = tensor_file(compression_type=CompressionType.HUFFMAN)
    assert read(write(model, CIRCLE))[0] == model
    with pytest.raises(FormatError, match=r"^tflite cannot hold Tensor\.compression_type$"):
        write(model, TFLITE)


def test_tflite_refuses_mx_quantization() -> None:
    details = tables.MXQuantization(axis=1)
    model = tensor_file(quantization=tables.QuantizationParameters(details=details))
    assert read(write(model, CIRCLE))[0] == model
    with pytest.raises(FormatError, match=r"^tflite has no MXQuantization$"):
        write(model, TFLITE)


def test_tflite_refuses_a_weights_format_of_circle() -> None:
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED16x1FLOAT32
    model = options_file(tables.FullyConnectedOptions(weights_format=shuffled))
    assert read(write(model, CIRCLE))[0] == model
    message = "^tflite has no FullyConnectedOptionsWeightsFormat SHUFFLED16x1FLOAT32$"
    with pytest.raises(FormatError, match=message):
        write(model, TFLITE)


@pytest.mark.parametrize("tag", CIRCLE_OPTIONS, ids=lambda tag: tag.name)
def test_tflite_refuses_options_of_circle_by_name(tag: Any) -> None:
    model = options_file(TABLES[tag.name]())
    assert read(write(model, CIRCLE))[0] == model
    with pytest.raises(FormatError, match=rf"^tflite has no {tag.name}$"):
        write(model, TFLITE)


def test_tflite_refuses_an_operator_of_circle_by_name() -> None:
    code = tables.OperatorCode(builtin_code=BuiltinOperator.INSTANCE_NORM)
    with pytest.raises(FormatError, match=r"^tflite has no BuiltinOperator INSTANCE_NORM$"):
        write(tables.Model(operator_codes=[code]), TFLITE)


def test_the_debug_index_of_a_graph_moves_between_formats() -> None:
    model = tables.Model(subgraphs=[tables.SubGraph(debug_metadata_index=3)])
    assert read(write(model, CIRCLE))[0] == read(write(model, TFLITE))[0] == model
    as_circle = write(model, TFLITE).replace(TFLITE.identifier, CIRCLE.identifier)
    root, unknown = read(as_circle)
    assert root.subgraphs == [tables.SubGraph()]
    assert unknown == ["field 5 of table SubGraph is not known and is left out"]


def test_writing_refuses_constants_of_more_than_2_gigabytes() -> None:
    large = np.broadcast_to(octets(1), (2**31,))
    model = tables.Model(buffers=[tables.Buffer(data=octets(1)), tables.Buffer(data=large)])
    with pytest.raises(
        FormatError, match=r"^2147483649 bytes of constants: .* at most 2147483647 bytes"
    ):
        write(model, CIRCLE)


def test_a_negative_zero_is_no_default() -> None:
    options = tables.LQFullyConnectedOptions(input_offset=-0.0)
    operator = tables.Operator(builtin_options=options)
    root = tables.Model(subgraphs=[tables.SubGraph(operators=[operator])])
    again, _ = read(write(root, CIRCLE))
    found = again.subgraphs[0].operators[0].builtin_options  # type: ignore[index]  # there is one
    assert isinstance(found, tables.LQFullyConnectedOptions)
    assert str(found.input_offset) == "-0.0"


def quantized(count: int, channels: int) -> tables.Model:
    """As many tensors of one shape and quantization, each of which is a table of its own."""
    tensors = [
        tables.Tensor(
            shape=np.array([1, channels], np.int32),
            name=str(n),
            quantization=tables.QuantizationParameters(
                scale=np.full(channels, 0.5, np.float32),
                zero_point=np.zeros(channels, np.int64),
                quantized_dimension=1,
            ),
        )
        for n in range(count)
    ]
    return tables.Model(subgraphs=[tables.SubGraph(tensors=tensors)])


def test_tensors_share_short_lists_and_small_tables() -> None:
    sizes = [len(write(quantized(count, 4), CIRCLE)) for count in (100, 101)]
    assert sizes[1] - sizes[0] <= 36, "a tensor with its name and its place in the list"
    root, _ = read(write(quantized(100, 4), CIRCLE))
    assert root.subgraphs == quantized(100, 4).subgraphs


def test_long_lists_are_not_shared_so_that_any_number_is_read() -> None:
    content = write(quantized(1000, 500), CIRCLE)
    assert len(content) > 1000 * 500 * 8
    root, _ = read(content)
    assert len((root.subgraphs or [])[0].tensors or []) == 1000


@pytest.mark.parametrize("channels", [8, 9, 40])
def test_what_is_shared_is_never_too_much_for_the_reader(channels: int) -> None:
    root, _ = read(write(quantized(4_000, channels), CIRCLE))
    assert len((root.subgraphs or [])[0].tensors or []) == 4_000


def test_shared_options_differ_where_a_sign_does() -> None:
    options = [tables.LeakyReluOptions(alpha=alpha) for alpha in (0.0, -0.0, 0.5, 0.5)]
    operators = [tables.Operator(builtin_options=option) for option in options]
    model = tables.Model(subgraphs=[tables.SubGraph(operators=operators)])
    (graph,) = read(write(model, CIRCLE))[0].subgraphs or []
    found = [operator.builtin_options for operator in graph.operators or []]
    assert [str(o.alpha) for o in found if isinstance(o, tables.LeakyReluOptions)] == [
        "0.0",
        "-0.0",
        "0.5",
        "0.5",
    ]
