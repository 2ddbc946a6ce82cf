"""What is noted about tensors that another network's were divided into."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Buffer, Model, Value
from luciole.ir.equalization import METADATA, equalized, forget_missing, rename
from tests.networks import network, value_named

FACTORS = np.geomspace(0.01, 200, 16, dtype=np.float32)


def hidden(model: Model) -> Value:
    return value_named(model, "act1")


def test_a_note_outlives_the_file(tmp_path: Path) -> None:
    model = network()
    rename(hidden(model), FACTORS)
    luciole.save(model, tmp_path / "divided.circle")
    again = luciole.load(tmp_path / "divided.circle")
    ((value, note),) = equalized(again.graph).items()
    assert (value.name, note.original) == ("act1/equalized", "act1")
    np.testing.assert_allclose(note.factors, FACTORS, rtol=2**-11)
    assert note.text() == "equalized: each channel divided by its factor, 0.01 to 200"


def test_what_is_divided_twice_is_divided_by_both() -> None:
    model = network()
    rename(hidden(model), FACTORS)
    rename(value_named(model, "act1/equalized"), FACTORS)
    ((value, note),) = equalized(model.graph).items()
    assert (value.name, note.original) == ("act1/equalized/equalized", "act1")
    assert note.factors[0] == pytest.approx(1e-4, rel=1e-2)


def test_notes_of_what_is_gone_are_forgotten() -> None:
    model = network()
    other = [("other", Buffer())]
    model.metadata = list(other)
    rename(hidden(model), FACTORS)
    forget_missing(model)
    assert len(model.metadata) == 2
    value_named(model, "act1/equalized").name = "another"
    forget_missing(model)
    assert model.metadata == other


def entry(name: bytes, prefix: int, factors: bytes, channels: int = 16) -> bytes:
    return struct.pack("<I", len(name)) + name + struct.pack("<II", prefix, channels) + factors


GOOD = FACTORS.astype("<f2").tobytes()


@pytest.mark.parametrize(
    "table",
    [
        b"",
        b"\xff\xff\xff\xff",
        struct.pack("<I", 1) + entry(b"act1", 4, GOOD[:-1]),
        struct.pack("<II", 1, 0xFFFFFFF0) + b"act1",
        struct.pack("<I", 1) + entry(b"act1", 4, GOOD, 0x7FFFFFFF),
        struct.pack("<I", 1) + entry(b"act1", 4, GOOD[:-2], 15),
        struct.pack("<I", 1) + entry(b"act1", 4, bytes(32)),
        struct.pack("<I", 1) + entry(b"act1", 4, np.full(16, np.nan, "<f2").tobytes()),
        struct.pack("<I", 1) + entry(b"act1", 4, np.full(16, np.inf, "<f2").tobytes()),
        struct.pack("<I", 1) + entry(b"act1", 4, np.full(16, -1, "<f2").tobytes()),
        struct.pack("<I", 1) + entry(b"somebody", 4, GOOD),
    ],
)
def test_a_damaged_table_and_factors_that_do_not_fit_say_nothing(table: bytes) -> None:
    model = network()
    model.metadata = [(METADATA, Buffer(np.frombuffer(table, np.uint8)))]
    assert equalized(model.graph) == {}


def test_a_table_written_by_hand_is_read() -> None:
    model = network()
    table = struct.pack("<I", 1) + entry(b"act1", 3, GOOD)
    model.metadata = [(METADATA, Buffer(np.frombuffer(table, np.uint8)))]
    ((value, note),) = equalized(model.graph).items()
    assert (value.name, note.original) == ("act1", "act")
