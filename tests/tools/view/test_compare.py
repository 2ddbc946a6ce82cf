"""Two models: which operators answer to each other, and what is said of the differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.compare import mark_differences, originals, twins
from luciole.drawing.document import Subject, document
from luciole.drawing.measures import set_bytes_before, set_measures
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.activations import Relu, Tanh
from luciole.ir.ops.softmax import Softmax
from tests.lquantizer.networks import X, uneven
from tests.networks import network
from tests.tools.view.conftest import Digits

Json = dict[str, Any]


def compared(first: Model, second: Model) -> Json:
    found = document([Subject(first, "a"), Subject(second, "b")], Blobs())
    mark_differences(found, first, second)
    return found


def said(found: Json) -> dict[str, list[str]]:
    """What is said of each difference, by status."""
    lines: dict[str, list[str]] = {}
    for difference in found["differences"]:
        lines.setdefault(difference["status"], []).extend(difference["words"])
    return lines


def changed_bias(model: Model, by: float) -> None:
    (value,) = [v for v in model.graph.values if v.name == "fc1/bias"]
    old = value.data
    assert old is not None
    value.set_data(old + np.float32(by))


def test_differences_name_layers_as_reports_do() -> None:
    first, second = network(), network()
    for model in (first, second):
        for op in model.graph.ops:
            op.output.name = f"model/relu/Relu;model/{op.name}/MatMul;model/{op.name}/BiasAdd"
    changed_bias(second, 1.0)
    made = compared(first, second)
    assert [difference["name"] for difference in made["differences"]] == ["fc1"]
    for model in made["models"]:
        assert [n["short"] for n in model["graphs"][0]["nodes"] if "short" in n] == ["fc1", "fc2"]


def test_the_same_model_has_no_differences() -> None:
    found = compared(network(), network())
    assert found["differences"] == []
    nodes = [m["graphs"][0]["nodes"] for m in found["models"]]
    assert [n.get("twin") for n in nodes[1]] == [None, *(n["id"] for n in nodes[0][1:-1]), None]


def test_every_kind_of_difference_is_marked() -> None:
    first, second = network(), network()
    graph = second.graph
    changed_bias(second, 1.0)
    old = graph.ops[1]
    new = graph.insert_after(old, Relu(old.operands[0]), "relu")  # type: ignore[arg-type]  # it has one
    old.output.replace_with(new.output)
    graph.remove(old)
    last = graph.ops[-1]
    graph.outputs = [graph.append(Softmax(last.output), "answer").output]
    assert said(compared(first, second)) == {
        "changed": ["constants differ"],
        "removed": ["only in the first model"],
        "added": ["only in the second model", "only in the second model"],
    }


def test_another_operator_type_or_attribute_is_said() -> None:
    first, second = network(), network()
    first_act = first.graph.ops[1]
    assert isinstance(first_act, Tanh)
    op = second.graph.ops[1]
    relu = Relu(op.operands[0])  # type: ignore[arg-type]  # it has one
    graph = second.graph
    op.output.name = "tanh"
    graph.insert_after(op, relu, "act1")
    op.output.replace_with(relu.output)
    graph.remove(op)
    graph.ops[2].output.dtype = TensorType.FLOAT16
    found = said(compared(first, second))
    assert found["replaced"] == ["TANH became RELU"]
    assert found["dtype"] == ["result: float32 became float16"]


def test_a_quantized_layer_is_compared_with_the_float_one_though_it_took_a_name_over(
    digits: Digits,
) -> None:
    first, second = luciole.load(digits.float_model), luciole.load(digits.quantized)
    pairs = {b.name: a.name for b, a in twins(first, second).items()}
    assert pairs == {"hidden/tanh": "hidden", "digit": "digit", "probabilities": "probabilities"}
    found = compared(first, second)
    lines = said(found)
    assert lines["replaced"][0] == "FULLY_CONNECTED became LQ_FULLY_CONNECTED"
    assert lines["replaced"][1] == "weights: 32 bit became 3 bit"
    assert lines["removed"] == ["only in the first model", "part of LQ_FULLY_CONNECTED now"]


def test_bytes_before_are_the_twins(digits: Digits) -> None:
    first, second = luciole.load(digits.float_model), luciole.load(digits.quantized)
    found = compared(first, second)
    set_measures(found, {})
    set_bytes_before(found)
    hidden = found["models"][1]["graphs"][0]["nodes"][1]
    assert hidden["measures"]["bytes_before"] == 4 * (320 * 64 + 320)
    assert hidden["measures"]["bytes"] == constant_bytes(second, 0) < 16_000
    assert [m["key"] for m in found["measures"]][:2] == ["bytes", "bytes_before"]


def constant_bytes(model: Model, index: int) -> int:
    """Bytes of an operator's constants by their arrays."""
    arrays: list[Array] = [
        v.data for v in model.graph.ops[index].operands if v is not None and v.data is not None
    ]
    return sum(a.nbytes for a in arrays)


def test_equalized_layers_are_paired_and_drawn_over_weights_with_the_same_factors() -> None:
    model = uneven()
    result = luciole.quantize(model, X, encode_bits=4)
    pairs = {b.name: a.name for b, a in twins(model, result.model).items()}
    assert pairs == {"act1/equalized": "fc1", "fc2": "fc2"}
    subjects = [Subject(model, "a"), Subject(result.model, "b")]
    subjects[1].originals = originals(model, result.model)
    found = document(subjects, Blobs())
    mark_differences(found, model, result.model)
    first, second = found["models"][1]["graphs"][0]["nodes"][1:3]
    assert first["original"] == "act1"
    assert "equalized: each channel divided by its factor" in first["difference"][-1]
    assert "equalized" not in " ".join(second["difference"])
    for node in (first, second):  # without the factors, below 8 dB
        assert node["levels"]["weights"]["of"] == "original"
        assert node["levels"]["weights"]["error"]["snr_db"] > 14
    set_measures(found, {"act1": {"snr_db": 12.0}})
    assert first["measures"]["snr_db"] == 12.0
    texts = [
        t["equalized"][0] for t in found["models"][1]["graphs"][0]["tensors"] if "equalized" in t
    ]
    assert texts == ["act1"]
