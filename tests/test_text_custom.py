"""Custom options, FlexBuffers and ONE's metadata tables in the text."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import Buffer, UnknownOp
from luciole.ir.text.flexbuffer import read_map, value_text
from luciole.ir.text.listing import describe, dump
from luciole.schema.enums import (
    BuiltinOperator,
    CustomOptionsFormat,
)
from luciole.schema.tables import (
    VarHandleOptions,
)
from tests.text_support import (
    custom,
    every_kind,
    lines,
    one_graph,
    op_table,
    source_table,
    with_metadata,
)


def test_tables_that_entries_share_are_shown_once() -> None:
    """Thousands of entries may name one long buffer."""
    model = with_metadata(ONE_op_table=b"")
    table = struct.pack("<IIII", 1, 7, 1, 3)
    buffer = Buffer(np.frombuffer(table, np.uint8))
    model.metadata = [("ONE_op_table", buffer)] * 3
    assert dump(model, "m").count("[7 : 3]") == 1
    assert [entry["table"] is None for entry in describe(model)["metadata"]] == [False, True, True]


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
