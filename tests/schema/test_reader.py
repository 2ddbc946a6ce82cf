"""Bytes that are no model file, or a damaged one, end in one sentence."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.importers import from_bytes
from luciole.schema import tables
from luciole.schema.dialect import CIRCLE, TFLITE
from luciole.schema.enums import TensorType
from luciole.schema.errors import FormatError
from luciole.schema.reader import Reader, read, read_damaged
from luciole.schema.table import SCALARS, TABLES
from luciole.schema.writer import write
from tests.samples import floats, octets, whole_model

VERSION, CODES, SUBGRAPHS, DESCRIPTION, BUFFERS, METADATA_BUFFER = range(6)
BASE = 44
"""Where the handmade root table lies, behind a layout of up to 16 fields."""


def handmade(
    slot: int,
    payload: bytes,
    offset: int = 4,
    *,
    back: int = BASE - 8,
    layout_size: int = 36,
    table_size: int = 8,
    at: int = 4,
    root: int = BASE,
) -> bytes:
    """A file whose root has one field: an offset, by default to the payload right behind it."""
    slots = [0] * 16
    slots[slot] = at
    layout = struct.pack("<HH16H", layout_size, table_size, *slots)
    table = struct.pack("<iI", back, offset)
    return struct.pack("<I4s", root, b"CIR0") + layout + table + payload


def text(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<I", len(content) if length is None else length) + content + b"\0"


def test_the_handmade_file_is_sound() -> None:
    root, unknown = read(handmade(DESCRIPTION, text(b"hello")))
    assert root == tables.Model(description="hello")
    assert unknown == []


@pytest.mark.parametrize("length", range(8))
def test_reading_refuses_what_is_too_short(length: int) -> None:
    content = handmade(DESCRIPTION, text(b"hello"))[:length]
    with pytest.raises(FormatError, match=rf"not a model file: {length} bytes is too short"):
        read(content)


@pytest.mark.parametrize("identifier", [b"CIR1", b"TFL2", b"\0\0\0\0", b"JSON"])
def test_reading_refuses_another_identifier(identifier: bytes) -> None:
    content = handmade(DESCRIPTION, text(b"hello")).replace(b"CIR0", identifier)
    with pytest.raises(FormatError) as caught:
        read(content)
    known = "expected CIR0 (circle) or TFL3 (tflite)"
    assert str(caught.value) == f"not a model file: identifier is {identifier!r}, {known}"


def test_reading_refuses_a_truncated_file_wherever_it_ends() -> None:
    model = whole_model()
    content = write(model, CIRCLE)
    messages, read_anyway = [], []
    for end in range(len(content)):
        try:
            root, _ = read(content[:end])
        except FormatError as error:
            messages.append(str(error))
        else:
            assert root == model
            read_anyway.append(end)
    assert all(re.fullmatch("(damaged|not a model) file: .+", m) for m in messages)
    assert len(read_anyway) < 16
    assert not any(content[min(read_anyway) :]), "only padding may be missing"


DAMAGED: dict[str, tuple[bytes, str]] = {
    "root": (handmade(3, b"", root=10**6), "table Model wants bytes 1000000 to 1000004"),
    "root in the end": (handmade(3, b"", root=50), "table Model wants bytes 50 to 54"),
    "field": (handmade(3, text(b"hi"), 1000), "a text wants bytes 1048 to 1052"),
    "largest field": (handmade(3, text(b"hi"), 2**32 - 1), "a text wants bytes 4294967343"),
    "layout before": (handmade(3, b"", back=45), "the layout of table Model wants bytes -1 to 3"),
    "layout behind": (handmade(3, b"", back=-(2**31)), "the layout of table Model wants bytes"),
    "layout size": (handmade(3, b"", layout_size=60000), "the layout of table Model wants"),
    "table size": (handmade(3, b"", table_size=60000), "table Model wants bytes 44 to 60044"),
    "field outside": (handmade(3, b"", at=8), "a field of table Model lies outside the table"),
    "field cut": (handmade(0, b"", at=7), "field version wants bytes 51 to 55"),
    "text": (handmade(3, text(b"hi", 2**32 - 1)), "a text wants bytes 56 to 4294967351"),
    "numbers": (handmade(METADATA_BUFFER, struct.pack("<II", 2, 1)), "list metadata_buffer wants"),
    "many": (handmade(METADATA_BUFFER, struct.pack("<I", 2**31)), "list metadata_buffer wants"),
    "tables": (handmade(BUFFERS, struct.pack("<II", 2, 4)), "list buffers wants bytes 56 to 64"),
    "most": (handmade(BUFFERS, struct.pack("<I", 2**32 - 1)), "list buffers wants bytes 56"),
    "item": (handmade(BUFFERS, struct.pack("<II", 1, 4096)), "table Buffer wants bytes 4152"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_reading_refuses_what_points_outside(name: str) -> None:
    content, message = DAMAGED[name]
    with pytest.raises(FormatError) as caught:
        read(content)
    assert str(caught.value).startswith(f"damaged file: {message}")


def shared(count: int, item: bytes) -> bytes:
    """A list whose items are all the same table, which follows it."""
    behind = [4 * (count - i) for i in range(count)]
    return struct.pack(f"<I{count}I", count, *behind) + item


def bare_table(slot: int, offset: int) -> bytes:
    """A table of one offset field, its layout before it: an item for ``shared``."""
    layout = struct.pack("<HH4H", 12, 8, *[4 if i == slot else 0 for i in range(4)])
    return struct.pack("<i", -8) + struct.pack("<I", offset) + layout


def test_reading_refuses_shared_offsets_that_blow_up() -> None:
    tensor = struct.pack("<i", -4) + struct.pack("<HH", 4, 4)
    graphs = shared(1000, bare_table(0, 16) + shared(1000, tensor))
    with pytest.raises(FormatError, match=r"more \w+ entries than \d+ bytes can hold"):
        read(handmade(SUBGRAPHS, graphs))


def test_a_table_that_a_few_share_is_read() -> None:
    tensor = struct.pack("<i", -4) + struct.pack("<HH", 4, 4)
    root, _ = read(handmade(SUBGRAPHS, shared(2, bare_table(0, 16) + shared(3, tensor))))
    assert root.subgraphs == [tables.SubGraph(tensors=[tables.Tensor()] * 3)] * 2


def sharing(count: int) -> bytes:
    """So many tensors with one list of 1000 extents."""
    extents = struct.pack("<I1000I", 1000, *[1] * 1000)
    tensors = shared(count, bare_table(0, 16) + extents)
    return handmade(SUBGRAPHS, shared(1, bare_table(0, 16) + tensors))


def test_reading_refuses_a_list_that_very_many_share() -> None:
    with pytest.raises(
        FormatError, match=r"more numbers in lists than \d+ bytes can hold, 4 times"
    ):
        read(sharing(1000))


def test_a_list_that_many_share_is_read() -> None:
    root, _ = read(sharing(200))
    tensor = tables.Tensor(shape=np.ones(1000, np.int32))
    assert root.subgraphs == [tables.SubGraph(tensors=[tensor] * 200)]


def test_a_constant_that_very_many_share_is_read() -> None:
    """Its bytes stay where they are, so nothing grows."""
    content = struct.pack("<I", 1 << 12) + bytes(1 << 12)
    root, _ = read(handmade(BUFFERS, shared(1000, bare_table(0, 16) + content)))
    assert root.buffers == [tables.Buffer(data=np.zeros(1 << 12, np.uint8))] * 1000


@pytest.mark.parametrize("name", [b"caf\xe9", b"\xff\xfe", b"ok \xc3\x28", b"\xf0\x9f\x98\x80"])
def test_names_that_are_not_utf_8_survive(name: bytes) -> None:
    root, _ = read(handmade(DESCRIPTION, text(name)))
    again = write(root, CIRCLE)
    assert name + b"\0" in again
    assert read(again)[0] == root


@pytest.mark.parametrize("kind", ["long", "ulong", "int", "uint", "short", "byte", "double"])
def test_numbers_have_all_their_bytes(kind: str) -> None:
    dtype = SCALARS[kind]
    for number in np.frombuffer(b"\xff" * 8 + b"\x01\x80" * 8 + bytes(range(8)), dtype):
        field = next(f for f in TABLES["Operator"].fields if f.name == "large_custom_options_size")
        reader = Reader(number.tobytes(), CIRCLE)
        found = reader._scalar(type(field)(field.id, "scalar", kind), 0)
        np.testing.assert_equal(found, number.item())


# ------------------------------------------------------------------------- what holds is read
def test_what_does_not_hold_is_left_out_and_its_place_is_told() -> None:
    content = bytearray(write(whole_model(), CIRCLE))
    name = content.index(b"filter")
    content[name - 4 : name] = struct.pack("<I", 2**32 - 1)
    found = read_damaged(bytes(content))
    assert [fault.place for fault in found.faults] == ["subgraphs[0].tensors[1].name"]
    assert found.faults[0].sentence.startswith(f"a text wants bytes {name} to ")
    expected = whole_model()
    tensor = (expected.subgraphs or [])[0].tensors[1]  # type: ignore[index]  # there is one
    tensor.name = None
    assert found.root == expected


def test_entries_that_do_not_hold_keep_their_numbers() -> None:
    tensor = struct.pack("<i", -4) + struct.pack("<HH", 4, 4)
    entries = struct.pack("<IIII", 3, 12, 2**31, 4) + tensor
    graph = bare_table(0, 16) + entries
    found = read_damaged(handmade(SUBGRAPHS, shared(1, graph)))
    assert found.root.subgraphs == [tables.SubGraph(tensors=[tables.Tensor()] * 3)]
    assert [fault.place for fault in found.faults] == ["subgraphs[0].tensors[1]"]
    codes = handmade(CODES, struct.pack("<II", 1, 2**31))
    assert [fault.place for fault in read_damaged(codes).faults] == ["operator_codes[0]"]


def test_very_many_faults_end_with_a_sentence_that_says_so() -> None:
    found = read_damaged(handmade(BUFFERS, struct.pack("<5001I", 5000, *[2**31] * 5000)))
    assert [fault.place for fault in found.faults] == [f"buffers[{i}]" for i in range(101)]
    assert found.faults[-1].sentence == "more is damaged: lists from here on are cut off"
    assert len(found.root.buffers or []) == 101


def test_reading_refuses_layouts_that_blow_up() -> None:
    """Each table has a layout of its own, and all of them lie in the same bytes."""
    count, slots = 60, 30000
    layouts = struct.pack(f"<{count + slots + 2}H", *[2 * slots] * (count + slots + 2))
    given = b"".join(struct.pack("<i", 2 * i - 4 * count) for i in range(count))
    behind = struct.pack(f"<I{count}I", count, *[4 * count] * count)
    found = read_damaged(handmade(BUFFERS, behind + given + layouts))
    said = [fault.sentence for fault in found.faults]
    assert said[0] == "a field of table Buffer lies outside the table"
    assert said[-1].startswith("more layout entries than ")


KINDS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "array": lambda content: np.frombuffer(content, np.uint8),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_bytes_are_read_without_copying(kind: str) -> None:
    data = KINDS[kind](write(whole_model(), TFLITE))
    root, _ = read(data)
    assert root == whole_model()
    numbers = (root.buffers or [])[2].data
    assert numbers is not None
    assert not numbers.flags.writeable
    assert np.shares_memory(numbers, np.frombuffer(data, np.uint8))


def test_a_mapped_file_is_read_without_copying(tmp_path: Path) -> None:
    path = tmp_path / "model.circle"
    path.write_bytes(write(whole_model(), CIRCLE))
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    root, _ = read(data)
    assert root == whole_model()
    numbers = (root.buffers or [])[2].data
    assert numbers is not None
    assert np.shares_memory(numbers, np.frombuffer(data, np.uint8))


def test_a_field_that_is_not_known_is_reported() -> None:
    root, unknown = read(handmade(12, text(b"new")))
    assert root == tables.Model()
    assert unknown == ["field 12 of table Model is not known and is left out"]


def test_a_kind_of_union_that_is_not_known_is_reported() -> None:
    details = tables.BlockwiseQuantization(block_size=32)
    tensor = tables.Tensor(
        quantization=tables.QuantizationParameters(details=details, scale=floats(1))
    )
    model = tables.Model(subgraphs=[tables.SubGraph(tensors=[tensor])])
    content = write(model, TFLITE).replace(TFLITE.identifier, CIRCLE.identifier)
    assert read(content)[0] != model, "2 means MXQuantization in circle"
    content = write(model, CIRCLE).replace(CIRCLE.identifier, TFLITE.identifier)
    root, unknown = read(content)
    assert unknown == ["QuantizationParameters.details has the unknown kind 3 and is left out"]
    assert (root.subgraphs or [])[0].tensors[0].quantization.scale == [1]  # type: ignore[index,union-attr]  # there is one


def test_what_litert_has_and_we_do_not_is_reported() -> None:
    from ai_edge_litert import schema_py_generated as litert
    from flatbuffers import Builder

    tensor = litert.TensorT(shape=[2], name="x", externalBuffer=1, quantization=_multi_axis(litert))
    groups = [litert.ExternalBufferGroupT(name="weights.bin")]
    model = litert.ModelT(
        version=3,
        subgraphs=[litert.SubGraphT(tensors=[tensor])],
        buffers=[litert.BufferT()],
        externalBufferGroups=groups,
    )
    builder = Builder(256)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    root, unknown = read(bytes(builder.Output()))
    assert sorted(unknown) == [
        "QuantizationParameters.details has the unknown kind 3 and is left out",
        "field 10 of table Tensor is not known and is left out",
        "field 8 of table Model is not known and is left out",
    ]
    assert (root.subgraphs or [])[0].tensors[0].name == "x"  # type: ignore[index]  # there is one


def _multi_axis(litert: Any) -> Any:
    details = litert.MultiAxisQuantizationT()
    kind = litert.QuantizationDetails.MultiAxisQuantization
    return litert.QuantizationParametersT(details=details, detailsType=kind)


def test_a_number_that_names_no_member_stays_a_number() -> None:
    tensor = tables.Tensor(type=77)  # type: ignore[arg-type]  # what this test is about
    content = write(tables.Model(subgraphs=[tables.SubGraph(tensors=[tensor])]), CIRCLE)
    read_type = (read(content)[0].subgraphs or [])[0].tensors[0].type  # type: ignore[index]  # there is one
    assert read_type == 77
    assert not isinstance(read_type, TensorType)


def test_loading_refuses_an_element_type_that_names_no_member() -> None:
    tensor = tables.Tensor(type=77, name="odd")  # type: ignore[arg-type]  # what this test is about
    graph = tables.SubGraph(tensors=[tensor])
    content = write(tables.Model(subgraphs=[graph], buffers=[tables.Buffer()]), CIRCLE)
    message = (
        r"error \[ELEMENT_TYPE\] subgraphs\[0\].tensors\[0\] 'odd': element type 77 is not known"
    )
    with pytest.raises(FormatError, match=message):
        from_bytes(content)


def test_data_behind_the_tables_is_read() -> None:
    model = tables.Model(
        subgraphs=[tables.SubGraph()],
        buffers=[tables.Buffer(), tables.Buffer(offset=2**33, size=4)],
    )
    with pytest.raises(
        FormatError, match=rf"buffers\[1\]: its bytes end at byte {2**33 + 4}, the file has"
    ):
        from_bytes(write(model, TFLITE))
    end = -(-len(write(model, TFLITE)) // 16) * 16
    (model.buffers or [])[1].offset = end
    content = write(model, TFLITE).ljust(end, b"\0") + b"\1\2\3\4"
    assert np.array_equal(from_bytes(content).buffers[1].data, octets(1, 2, 3, 4))  # type: ignore[arg-type]  # there is data


def test_reading_refuses_a_long_text_that_many_share() -> None:
    tensor = bare_table(3, 16) + text(b"x" * 1000)
    graphs = shared(1, bare_table(0, 16) + shared(1000, tensor))
    with pytest.raises(FormatError, match=r"more text entries than \d+ bytes can hold"):
        read(handmade(SUBGRAPHS, graphs))
