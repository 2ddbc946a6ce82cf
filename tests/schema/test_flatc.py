"""Bytes against flatbuffers' own compiler: it decodes what we write, we read what it encodes."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.schema import enums, tables
from luciole.schema.derive import HERE
from luciole.schema.dialect import CIRCLE
from luciole.schema.reader import Reader, read
from luciole.schema.table import TABLES, Table
from luciole.schema.writer import Writer, write
from tests.samples import filled, plain, whole_model
from tests.support import data_path

pytestmark = pytest.mark.skipif(shutil.which("flatc") is None, reason="needs flatc on the PATH")

SCHEMA = HERE / "circle.fbs"
DEMO = Path(luciole.__path__[0]) / "demo_data" / "digits.circle"


def flatc(*arguments: str | Path) -> None:
    subprocess.run(["flatc", *map(str, arguments)], check=True, capture_output=True)


def decoded(content: bytes, folder: Path) -> Any:
    """The JSON that flatc makes of a file."""
    path = folder / "model.circle"
    path.write_bytes(content)
    flatc("--json", "--raw-binary", "--strict-json", "-o", folder, SCHEMA, "--", path)
    return json.loads((folder / "model.json").read_text())


def encoded(text: str, folder: Path) -> bytes:
    """The file that flatc makes of JSON."""
    (folder / "model.json").write_text(text)
    flatc("--binary", "-o", folder, SCHEMA, folder / "model.json")
    return (folder / "model.circle").read_bytes()


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Equal JSON; flatc prints six decimals of a float."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key, value in ours.items():
            assert_same(value, theirs[key], f"{where}.{key}")
    elif isinstance(ours, list) and ours != theirs:
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(ours, float):
        assert math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6), where
    else:
        assert ours == theirs, where


def test_flatc_accepts_the_schema(tmp_path: Path) -> None:
    flatc("--python", "-o", tmp_path, SCHEMA)
    made = {path.stem for path in tmp_path.rglob("*.py")} - {"__init__"}
    assert TABLES.keys() <= made


def test_flatc_decodes_a_model_built_in_code(tmp_path: Path) -> None:
    model = whole_model()
    assert_same(plain(model), decoded(write(model, CIRCLE), tmp_path))


def test_flatc_encodes_a_model_built_in_code(tmp_path: Path) -> None:
    model = whole_model()
    root, unknown = read(encoded(json.dumps(plain(model)), tmp_path))
    assert unknown == []
    assert root == model


@pytest.mark.parametrize("name", ["kws_fp32", "kws_int8", "mnist_lstm_fp32", "resnet8_int8"])
def test_flatc_decodes_what_we_write_of_real_models(name: str, tmp_path: Path) -> None:
    content = to_bytes(from_bytes(data_path(f"models/{name}.tflite").read_bytes()))
    assert_same(plain(read(content)[0]), decoded(content, tmp_path))


def test_flatc_decodes_the_demo(tmp_path: Path) -> None:
    content = to_bytes(from_bytes(DEMO.read_bytes()))
    assert_same(plain(read(content)[0]), decoded(content, tmp_path))


def one_file(tables_: list[Table], folder: Path) -> list[Path]:
    """Each table as the root of a file of its own."""
    paths = []
    for table in tables_:
        builder = flatbuffers.Builder(1024)
        builder.Finish(Writer(builder, CIRCLE).table(table), file_identifier=b"CIR0")
        path = folder / f"{type(table).__name__}.circle"
        path.write_bytes(bytes(builder.Output()))
        paths.append(path)
    return paths


ROOTS = sorted(TABLES.keys() - {"Model", "SubGraph", "Operator"})


def test_flatc_decodes_every_field_of_every_table(tmp_path: Path) -> None:
    for path in one_file([filled(TABLES[name]) for name in ROOTS], tmp_path):
        root = f"circle.{path.stem}"
        flatc("--json", "--strict-json", "--root-type", root, "-o", tmp_path, SCHEMA, "--", path)
        theirs = json.loads(path.with_suffix(".json").read_text())
        assert_same(plain(filled(TABLES[path.stem])), theirs, path.stem)


def test_every_field_of_every_table_reads_as_flatc_writes_it(tmp_path: Path) -> None:
    for name in ROOTS:
        expected = filled(TABLES[name])
        source = tmp_path / f"{name}.json"
        source.write_text(json.dumps(plain(expected)))
        flatc("--binary", "--root-type", f"circle.{name}", "-o", tmp_path, SCHEMA, source)
        path = next(p for p in tmp_path.glob(f"{name}.*") if p != source)
        reader = Reader(path.read_bytes(), CIRCLE)
        assert reader.table(TABLES[name], reader.offset(0)) == expected, name
        assert reader.unknown == []


HAND_WRITTEN = """
{
  "version": 2,
  "description": "caf\\u00e9 \\u2603 \\"quoted\\"",
  "operator_codes": [
    {"deprecated_builtin_code": 9, "version": 4, "builtin_code": "FULLY_CONNECTED"},
    {"deprecated_builtin_code": -3, "builtin_code": "BCQ_FULLY_CONNECTED"},
    {"deprecated_builtin_code": 32, "builtin_code": "LQ_FULLY_CONNECTED", "custom_code": "LQ"}
  ],
  "subgraphs": [{
    "name": "",
    "inputs": [0],
    "outputs": [],
    "tensors": [{
      "shape": [1, 2147483647], "type": "UINT4", "buffer": 4294967295, "is_variable": true,
      "quantization": {
        "scale": [0.5, -1.25, 3.4028235e38], "zero_point": [-9223372036854775808, 5],
        "details_type": "MXQuantization", "details": {"axis": -1}, "quantized_dimension": 3
      },
      "sparsity": {"dim_metadata": [
        {"format": "SPARSE_CSR",
         "array_segments_type": "Uint16Vector", "array_segments": {"values": [65535, 0]},
         "array_indices_type": "Int32Vector", "array_indices": {"values": [-1]}}
      ]},
      "compression_type": "HUFFMAN"
    }, {}],
    "operators": [
      {"opcode_index": 2, "builtin_options_type": "LQFullyConnectedOptions",
       "builtin_options": {"hidden_size": 784, "input_offset": -0.375,
                           "fused_activation_function": "TANH"}},
      {"builtin_options_2_type": "StablehloPadOptions",
       "builtin_options_2": {"interior_padding": [1, 0]},
       "mutating_variable_inputs": [true, false], "debug_metadata_index": 7,
       "large_custom_options_size": 18446744073709551615},
      {"builtin_options_type": "Conv2DOptions", "builtin_options": {}}
    ]
  }],
  "buffers": [{}, {"data": [0, 255]}, {"offset": 1, "size": 1}]
}
"""


def test_json_written_by_hand_reads_equal(tmp_path: Path) -> None:
    root, unknown = read(encoded(HAND_WRITTEN, tmp_path))
    assert unknown == []
    assert_same(plain(root), json.loads(HAND_WRITTEN))


def test_json_written_by_hand_has_the_right_types_and_defaults(tmp_path: Path) -> None:
    root, _ = read(encoded(HAND_WRITTEN, tmp_path))
    assert root.description == 'café ☃ "quoted"'
    assert root.metadata is None
    (graph,) = root.subgraphs or []
    assert (graph.name, graph.debug_metadata_index) == ("", -1)
    assert isinstance(graph.outputs, np.ndarray)
    assert graph.outputs.dtype == np.int32
    tensor, empty = graph.tensors or []
    assert tensor.type is enums.TensorType.UINT4
    assert tensor.is_variable is True
    assert (empty.type, empty.shape, empty.buffer) == (enums.TensorType.FLOAT32, None, 0)
    assert empty == tables.Tensor()
    lq, pad, conv = graph.operators or []
    assert isinstance(lq.builtin_options, tables.LQFullyConnectedOptions)
    assert isinstance(pad.builtin_options_2, tables.StablehloPadOptions)
    assert pad.mutating_variable_inputs is not None
    assert pad.mutating_variable_inputs.tolist() == [True, False]
    assert pad.large_custom_options_size == 2**64 - 1
    assert isinstance(conv.builtin_options, tables.Conv2DOptions)
    assert (conv.builtin_options.dilation_w_factor, conv.builtin_options.stride_w) == (1, 0)
    assert conv.debug_metadata_index == -1
