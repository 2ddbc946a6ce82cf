"""The JSON form."""

from __future__ import annotations

import json

import numpy as np
from flatbuffers import flexbuffers

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir.text.listing import describe
from tests.text_support import (
    conv_model,
    custom,
    f32,
    one_graph,
)


def test_describe_says_everything_about_a_small_model() -> None:
    found = describe(conv_model(), "model.circle")
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
        "findings": None,
    }
    assert {k: graph[k] for k in ("name", "inputs", "outputs")} == {
        "name": "main",
        "inputs": [0],
        "outputs": [2],
    }


def test_describe_says_everything_about_a_tensor() -> None:
    (graph,) = describe(conv_model())["subgraphs"]
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


def test_describe_says_everything_about_an_operator() -> None:
    (graph,) = describe(conv_model())["subgraphs"]
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
