"""Constants behind the tables: how files are written and read, and files of more than 2 GB."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Graph, Model, TensorType
from luciole.ir.errors import UnsupportedError
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.schema import tables
from luciole.schema.dialect import CIRCLE, DIALECTS, TFLITE, Dialect
from luciole.schema.large import ALIGNMENT, parts
from luciole.schema.reader import read
from luciole.schema.writer import LARGEST, write
from luciole.tools import dump, verify
from tests.samples import octets
from tests.support import litert

both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def sums() -> tuple[Model, list[Array]]:
    """x + a + b + c with constants of odd sizes, and metadata."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (3, 7))
    rng = np.random.default_rng(0)
    constants = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 7), (7,), (1,))]
    for number, array in enumerate(constants):
        x = graph.append(Add(x, graph.add_constant(f"c{number}", array)), f"y{number}").output
    graph.outputs = [x]
    model.metadata.append(("about", luciole.ir.Buffer(octets(*range(100)))))
    return model, constants


@both
def test_constants_are_written_behind_the_tables_and_read_back(dialect: Dialect) -> None:
    model, constants = sums()
    content = to_bytes(model, dialect.name, use_buffer_offset=True)
    root, unknown = read(content)
    assert unknown == []
    moved = [b for b in root.buffers or () if b.offset]
    assert [b.size for b in moved] == [84, 28], "4 bytes stay where they are"
    assert all(b.data is None and b.offset % ALIGNMENT == 0 for b in moved)
    assert moved[-1].offset + moved[-1].size == len(content)
    again = from_bytes(content)
    found = [v.data for v in again.graph.values if v.is_constant]
    for array, data in zip(constants, found, strict=True):
        np.testing.assert_array_equal(array, data)
    assert to_bytes(again, dialect.name) == to_bytes(model, dialect.name)
    assert to_bytes(again, dialect.name, use_buffer_offset=True) == content


def test_litert_runs_a_file_with_constants_behind_the_tables() -> None:
    model, constants = sums()
    x = np.random.default_rng(1).normal(size=(3, 7)).astype(np.float32)
    (y,) = litert(to_bytes(model, "tflite", use_buffer_offset=True), [x])
    np.testing.assert_array_equal(y, sum(constants, start=x))


def test_saving_says_how_many_bytes_it_wrote(tmp_path: Path) -> None:
    model, _ = sums()
    path = tmp_path / "m.tflite"
    assert luciole.save(model, path, use_buffer_offset=True) == path.stat().st_size
    assert path.read_bytes() == to_bytes(model, "tflite", use_buffer_offset=True)


def test_saving_refuses_what_the_format_lacks_and_leaves_no_file(tmp_path: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x, one = graph.add_input("x", (1, 2, 2, 1)), np.ones(1, np.float32)
    op = InstanceNorm(x, graph.add_constant("a", one), graph.add_constant("b", one))
    graph.outputs = [graph.append(op, "y").output]
    with pytest.raises(UnsupportedError, match="tflite has no "):
        luciole.save(model, tmp_path / "m.tflite")
    assert list(tmp_path.iterdir()) == []


def test_constants_of_more_than_2_gigabytes_go_behind_the_tables() -> None:
    """None of the bytes is touched: the constant is one byte, seen many times over."""
    half = np.broadcast_to(octets(0), (2**30,))
    tensors = [tables.Tensor(buffer=number) for number in (1, 2, 3)]
    model = tables.Model(
        subgraphs=[tables.SubGraph(tensors=tensors)],
        buffers=[tables.Buffer(), *[tables.Buffer(data=half)] * 3],
    )
    file = parts(model, TFLITE)
    first = next(file)
    assert len(first) < 1000
    found = read(bytes(first))[0].buffers or []
    assert [b.size for b in found] == [0, 2**30, 2**30, 2**30]
    assert [b.offset - found[1].offset for b in found[1:]] == [0, 2**30, 2**31]


def test_data_in_the_tables_comes_before_data_behind_them() -> None:
    buffers = [tables.Buffer(), tables.Buffer(data=octets(1, 2), offset=2**40, size=4)]
    content = write(tables.Model(subgraphs=[tables.SubGraph()], buffers=buffers), CIRCLE)
    assert from_bytes(content).buffers[1].data is not None


def sparse_file(path: Path, size: int, dialect: Dialect) -> int:
    """A model that picks rows of ``size`` bytes of zeros, with ones in the last row; the file takes
    no room on the disk. Returns the number of rows.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    table = graph.add_constant("table", np.zeros((1, 256), np.float32))
    rows = graph.add_input("rows", (2,), TensorType.INT32)
    graph.outputs = [graph.append(Gather(table, rows), "picked").output]
    content = bytearray(to_bytes(model, dialect.name, use_buffer_offset=True))
    count = size // 1024
    table.dims = (count, 256)
    root, _ = read(content)
    assert root.subgraphs is not None
    root.subgraphs[0].tensors[0].shape = np.array(table.dims, np.int32)  # type: ignore[index]  # there is one
    root.buffers[1].size = count * 1024  # type: ignore[index]  # there is one
    tables_alone = write(root, dialect)
    begin = struct.unpack("<Q", struct.pack("<Q", root.buffers[1].offset))[0]  # type: ignore[index]  # there is one
    assert len(tables_alone) <= begin
    with path.open("wb") as file:
        file.write(tables_alone)
        file.truncate(begin + count * 1024)
        file.seek(-1024, 2)
        file.write(np.ones(256, np.float32).tobytes())
    return count


@both
def test_a_file_of_3_gigabytes_is_read_looked_at_and_run(
    tmp_path: Path, dialect: Dialect, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"large.{dialect.name}"
    rows = sparse_file(path, 3 << 30, dialect)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system has no sparse files")
    assert path.stat().st_size > LARGEST
    model = luciole.load(path)
    assert model.graph.values[0].data is not None
    interpreter = luciole.Interpreter(model)
    picked = interpreter.run(np.array([0, rows - 1], np.int32))["picked"]
    np.testing.assert_array_equal(picked, np.repeat([[0], [1]], 256, axis=1).astype(np.float32))
    assert verify.main([str(path)]) == 0
    assert dump.main([str(path)]) == 0
    assert f"{rows * 1024}" in capsys.readouterr().out
