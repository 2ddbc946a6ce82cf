"""LQ_FULLY_CONNECTED in files: written so that every tool can show it, read in three forms."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole.schema
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import UnknownOp, UnsupportedError
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.schema import tables
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.writer import write
from tests.lq_file_support import FORMS, Edit, custom_alone, reread, written
from tests.lq_support import random_input, random_layer, with_offsets

X = random_input((3, 40))
LAYER = replace(with_offsets(random_layer(40, 5, 3, 2)), activation=Act.RELU6)
OPTIONS = {"hidden_size": 40, "fused_activation_function": 3, "input_offset": 0.75}


def test_the_operator_is_a_custom_one_to_old_readers_and_itself_to_new_ones() -> None:
    _, code, operator = written(LAYER.model(X))
    assert (code.deprecated_builtin_code, int(code.builtin_code)) == (32, -64)
    assert code.custom_code == "LQFullyConnected"
    assert isinstance(operator.builtin_options, tables.LQFullyConnectedOptions)
    typed = {name: getattr(operator.builtin_options, name) for name in OPTIONS}
    assert typed == OPTIONS
    assert operator.custom_options is not None
    assert flexbuffers.Loads(operator.custom_options.tobytes()) == OPTIONS


@pytest.mark.parametrize("edit", FORMS)
def test_every_form_is_read_as_the_same_operator(edit: Edit) -> None:
    model = reread(LAYER.model(X), edit)
    (op,) = model.graph.ops
    assert isinstance(op, LQFullyConnected)
    assert (op.hidden_size, op.activation, op.input_offset) == (40, Act.RELU6, 0.75)
    names = ["x0", "c1", "c2", "c3", "c4", "c5"]
    assert [v and v.name for v in op.operands] == names
    wanted = Interpreter(LAYER.model(X), compiled=False).run(X)["y0"]
    np.testing.assert_array_equal(Interpreter(model, compiled=False).run(X)["y0"], wanted)


def test_absent_bias_and_offsets_stay_absent() -> None:
    layer = replace(LAYER, bias=None, weights_offsets=None)
    model = from_bytes(to_bytes(layer.model(X)))
    (op,) = model.graph.ops
    assert isinstance(op, LQFullyConnected)
    assert op.bias is None
    assert op.weights_offsets is None
    found, wanted = (Interpreter(m, compiled=False) for m in (model, layer.model(X)))
    np.testing.assert_array_equal(found.run(X)["y0"], wanted.run(X)["y0"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (b"", "custom options are no FlexBuffer"),
        (b"\xff\xff\xff", "custom options are no FlexBuffer"),
        (bytes(flexbuffers.Dumps([1, 2])), "custom options are no FlexBuffer map"),
        (bytes(flexbuffers.Dumps({"hidden_size": "forty"})), "hidden_size is 'forty', expected a"),
        (
            bytes(flexbuffers.Dumps({"hidden_size": 40, "fused_activation_function": 77})),
            "fused_activation_function is 77, which has no meaning",
        ),
        (
            bytes(flexbuffers.Dumps({"hidden_size": float("inf")})),
            "hidden_size is inf, which has no meaning",
        ),
    ],
)
def test_running_refuses_custom_options_without_meaning(options: bytes, reason: str) -> None:
    def edit(code: tables.OperatorCode, operator: tables.Operator) -> None:
        custom_alone(code, operator)
        operator.custom_options = np.frombuffer(options, np.uint8)

    model = reread(LAYER.model(X), edit)
    assert isinstance(model.graph.ops[0], UnknownOp)
    with pytest.raises(UnsupportedError, match=f"LQFullyConnected.*{reason}"):
        Interpreter(model).run(X)


def test_tflite_refuses_the_operator() -> None:
    with pytest.raises(UnsupportedError, match=r"tflite has no operator LQFullyConnected; "):
        to_bytes(LAYER.model(X), "tflite")


def decoded(folder: Path, schema: Path) -> Any:
    """The file as flatc shows it under a schema."""
    (folder / "m.circle").write_bytes(to_bytes(LAYER.model(X)))
    command = ["flatc", "--json", "--strict-json", "--raw-binary", "-o", str(folder), str(schema)]
    try:
        subprocess.run([*command, "--", folder / "m.circle"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs flatc: Debian's flatbuffers-compiler")
    return json.loads((folder / "m.json").read_text())


def test_flatc_decodes_the_file(tmp_path: Path) -> None:
    shown = decoded(tmp_path, Path(next(iter(luciole.schema.__path__))) / "circle.fbs")
    assert shown["operator_codes"] == [
        {
            "deprecated_builtin_code": 32,
            "custom_code": "LQFullyConnected",
            "builtin_code": "LQ_FULLY_CONNECTED",
        }
    ]
    (operator,) = shown["subgraphs"][0]["operators"]
    assert operator["builtin_options_type"] == "LQFullyConnectedOptions"
    assert operator["builtin_options"] == OPTIONS | {"fused_activation_function": "RELU6"}
    assert flexbuffers.Loads(bytes(operator["custom_options"])) == OPTIONS
    tensors = {t["name"]: t["shape"] for t in shown["subgraphs"][0]["tensors"]}
    assert tensors["c3"] == [5, 2, 2]


def test_litert_sees_a_custom_operator_by_its_name() -> None:
    """What TFLite's rules make of the file once its identifier and version are TFLite's."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    root, _, _ = written(LAYER.model(X))
    root.version = 3
    content = write(root, CIRCLE).replace(b"CIR0", b"TFL3", 1)
    with pytest.raises(RuntimeError, match=r"unresolved custom op: LQFullyConnected"):
        LiteRT(model_content=content).allocate_tensors()
