"""The short form for people, and real files."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.importers import from_bytes
from luciole.ir import UnknownOp
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.text.common import plain
from luciole.ir.text.listing import describe, dump, show, show_op
from luciole.schema import opcodes
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
)
from luciole.schema.reader import read
from tests.support import data_path
from tests.text_support import (
    f32,
    one_graph,
)


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
