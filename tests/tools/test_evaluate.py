"""``luciole eval``: accuracy and agreement."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, Model, Signature, TensorType
from luciole.ir.ops.quantize import Dequantize
from luciole.schema.tables import QuantizationParameters
from luciole.tools.data import write_hdf5
from tests.networks import dense, network, random, steps, two_inputs
from tests.tools.running import Outcome, call

Capture = pytest.CaptureFixture[str]


def int8_network() -> Model:
    """A dense layer behind an int8 input with the scale 2."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("image", (1, 20), TensorType.INT8)
    x.quantization = QuantizationParameters(
        scale=np.array([2], np.float32), zero_point=np.array([0])
    )
    wide = graph.append(Dequantize(x), "wide")
    graph.outputs = [dense(graph, wide.output, (4, 20), "fc1").output]
    return model


def test_json_has_the_figures(capsys: Capture, folder: Path) -> None:
    argv = ["eval", "model.circle", "--data", "test.npz", "--against", "model.circle", "--json"]
    outcome = call(capsys, *argv)
    figures = json.loads(outcome.out)
    assert outcome.code == 0
    assert (figures["records"], figures["top1"], figures["agreement"]) == (60, 0.75, 1.0)
    assert figures["seconds"] > 0


def test_text_has_the_same_figures(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "eval", "model.circle", "--data", "test.npz")
    lines = outcome.out.splitlines()
    assert lines[:2] == ["records    60", "top-1      75.00 %"]
    assert outcome.err.startswith("data: x: float32 [60,20], min ")


def test_without_labels_there_is_no_accuracy(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "eval", "model.circle", "--data", "train.npy", "--json")
    figures = json.loads(outcome.out)
    assert (figures["records"], figures["top1"], figures["agreement"]) == (60, None, None)
    outcome = call(capsys, "eval", "model.circle", "--data", "train.npy")
    assert "top-1" not in outcome.out
    assert outcome.err.splitlines()[1].startswith("note: the data has no labels")
    assert "note" not in call(capsys, "eval", "model.circle", "--data", "test.npz").err
    argv = ["eval", "model.circle", "--data", "train.npy", "--against", "model.circle"]
    assert "note" not in call(capsys, *argv).err


def test_labels_may_be_in_a_file_of_their_own(capsys: Capture, folder: Path) -> None:
    with np.load("test.npz") as data:
        np.save("labels.npy", data["y_test"])
    argv = ["eval", "model.circle", "--data", "train.npy", "--labels", "labels.npy", "--json"]
    assert json.loads(call(capsys, *argv).out)["top1"] == 0.75


def test_the_first_records(capsys: Capture, folder: Path) -> None:
    argv = ["eval", "model.circle", "--data", "test.npz", "--limit", "20", "--json"]
    figures = json.loads(call(capsys, *argv).out)
    assert (figures["records"], figures["top1"]) == (20, 0.25)


def test_agreement_counts_equal_answers(capsys: Capture, folder: Path) -> None:
    other = luciole.quantize("model.circle", random(50, 60, 20), encode_bits=1).model
    other.graph.inputs[0].name = "another"  # inputs are matched by order
    Path("other.circle").write_bytes(to_bytes(other))
    argv = ["eval", "model.circle", "--data", "test.npz", "--against", "other.circle", "--json"]
    x = random(50, 60, 20)
    answers = [
        next(iter(luciole.Interpreter(f).run(x).values())).argmax(1)
        for f in ("model.circle", "other.circle")
    ]
    wanted = np.mean(answers[0] == answers[1])
    assert json.loads(call(capsys, *argv).out)["agreement"] == pytest.approx(wanted)
    assert 0.25 < wanted < 1


def test_models_with_several_inputs(capsys: Capture, folder: Path) -> None:
    luciole.save(two_inputs(), "two.circle")
    records = {"left": random(1, 8, 6), "right": random(2, 8, 9)}
    write_hdf5("two.hdf5", records)
    labels = luciole.Interpreter("two.circle").run(records)["sum"].argmax(1)
    np.save("labels.npy", labels)
    argv = ["eval", "two.circle", "--data", "two.hdf5", "--labels", "labels.npy", "--json"]
    assert json.loads(call(capsys, *argv).out)["top1"] == 1.0


def test_images_reach_a_quantized_model(capsys: Capture, folder: Path) -> None:
    """As uint8 and as floats, preprocessed or not, and as what the model stores."""
    model = int8_network()
    Path("int8.circle").write_bytes(to_bytes(model))
    images = np.random.default_rng(0).integers(0, 250, (40, 20), np.uint8)
    stored = np.floor(images / 2 + 0.5).astype(np.int8)
    labels = luciole.Interpreter(model).run(stored)["fc1"].argmax(1)
    np.savez("labels.npz", labels)
    for name, array, expression in (
        ("images", images, "x"),
        ("floats", images.astype(np.float32), "none"),
        ("doubled", images * 2.0, "x/2"),
        ("stored", stored, "none"),
    ):
        np.save(f"{name}.npy", array)
        argv = ["--data", f"{name}.npy", "--labels", "labels.npz", "--preprocess", expression]
        outcome = call(capsys, "eval", "int8.circle", *argv, "--json")
        assert json.loads(outcome.out)["top1"] == 1.0, name


def test_the_other_model_may_be_quantized(capsys: Capture, folder: Path) -> None:
    """In either direction, and under other names of inputs."""
    first = Model()
    graph = first.add_graph(Graph("main"))
    dense(graph, graph.add_input("x", (1, 20)), (4, 20), "fc1")
    graph.outputs = [graph.values[-1]]
    luciole.save(first, "float.circle")
    luciole.save(int8_network(), "int8.circle")
    np.save("even.npy", 2 * np.random.default_rng(0).integers(-60, 60, (40, 20)).astype(np.float32))
    for pair in (("float.circle", "int8.circle"), ("int8.circle", "float.circle")):
        argv = ["eval", pair[0], "--data", "even.npy", "--against", pair[1], "--json"]
        outcome = call(capsys, *argv)
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["agreement"] == 1.0


def test_eval_refuses_another_model_with_other_inputs(capsys: Capture, folder: Path) -> None:
    luciole.save(two_inputs(), "two.circle")
    argv = ["eval", "model.circle", "--data", "test.npz", "--against", "two.circle"]
    assert call(capsys, *argv).error(2) == "the other model has 2 inputs, the data 1"
    luciole.save(network((19, 4)), "small.circle")
    argv[-1] = "small.circle"
    assert "a record of 'x' is [19], the data has [20]" in call(capsys, *argv).error(1)


def test_eval_refuses_labels_of_another_shape(capsys: Capture, folder: Path) -> None:
    np.save("labels.npy", np.zeros((60, 2)))
    argv = ["eval", "model.circle", "--data", "train.npy", "--labels", "labels.npy"]
    assert "the labels have shape [60, 2], the answers [60]" in call(capsys, *argv).error(2)
    np.save("labels.npy", np.zeros(59))
    assert "60 records need 60 labels" in call(capsys, *argv).error(1)


def test_eval_refuses_operators_without_kernel(
    capsys: Capture, folder: Path, unsupported: Path
) -> None:
    text = call(capsys, "eval", unsupported, "--data", "train.npy").error(3)
    assert text.startswith("cannot run CUSTOM(Mystery) (2x): ")
    argv = ["eval", "model.circle", "--data", "train.npy", "--against", str(unsupported)]
    call(capsys, *argv).error(3)


def two_heads() -> Model:
    """Four classes, and one number beside them that comes first."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 20))
    gate = dense(graph, x, (1, 20), "gate").output
    classes = dense(graph, x, (4, 20), "classes").output
    more = dense(graph, x, (3, 20), "more").output
    graph.outputs = [gate, classes, more]
    model.signatures = [Signature("serving_default", graph, [("img", x)], [("kind", classes)])]
    return model


def heads(capsys: Capture, *argv: str) -> Outcome:
    x = random(7, 60, 20)
    luciole.save(two_heads(), "heads.circle")
    classes = luciole.Interpreter("heads.circle").run(x)["classes"].argmax(1)
    np.savez("heads.npz", x_test=x, y_test=classes)
    return call(capsys, "eval", "heads.circle", "--data", "heads.npz", *argv)


def test_every_output_that_chooses_is_judged(capsys: Capture, folder: Path) -> None:
    outcome = heads(capsys, "--against", "heads.circle")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[1] == ["top-1", "100.00", "%", "of", "kind"], "as the signature calls it"
    assert lines[2][-3:] == ["heads.circle", "of", "kind"]
    assert lines[3][-2:] == ["of", "more"]
    assert float(lines[3][1]) < 100
    assert "gate" not in outcome.out
    figures = json.loads(heads(capsys, "--json").out)
    assert (figures["top1"], figures["outputs"][0]["top1"]) == (None, 1.0)
    assert [row["output"] for row in figures["outputs"]] == ["kind", "more"]


@pytest.mark.parametrize("name", ["classes", "kind"])
def test_one_output_is_judged_by_its_name_or_a_signature_s(
    capsys: Capture, folder: Path, name: str
) -> None:
    figures = json.loads(heads(capsys, "--output", name, "--json").out)
    assert figures["top1"] == 1.0
    assert figures["confusion"] is not None


def test_eval_refuses_outputs_that_choose_nothing(capsys: Capture, folder: Path) -> None:
    text = heads(capsys, "--output", "gate").error(2)
    assert text.startswith("output 'gate' scores no classes: luciole diff")
    text = heads(capsys, "--output", "g").error(2)
    assert text == "there is no output 'g', only gate, kind, more"
    text = heads(capsys, "--per-class").error(2)
    assert text == "--per-class tells the classes of one output: --output NAME says which"


def test_eval_refuses_another_model_without_that_output(capsys: Capture, folder: Path) -> None:
    text = heads(capsys, "--against", "model.circle").error(2)
    assert text == "the other model has 1 outputs, number 2 is judged"


def stepwise(softmax: bool) -> Array:
    """Write a network that answers in each of 6 steps, a worse one, and records with labels of
    which 10 of 360 are wrong; returns the labels.
    """
    x = random(5, 60, 6, 20)
    model, worse = steps(softmax=softmax), steps(softmax=softmax)
    kernel = next(v for v in worse.graph.values if v.name == "fc2/weights")
    assert kernel.data is not None
    kernel.set_data(np.round(kernel.data * 2) / 2)
    luciole.save(model, "steps.circle")
    luciole.save(worse, "worse.circle")
    answers = [
        np.concatenate([i.run(row[None])[i.graph.outputs[0].name] for row in x]).argmax(-1)
        for i in (luciole.Interpreter("steps.circle"), luciole.Interpreter("worse.circle"))
    ]
    labels = answers[0].copy()
    labels[:10, 3] = (labels[:10, 3] + 1) % 4
    np.savez("steps.npz", x_test=x, y_test=labels)
    np.savez("alone.npz", x_test=x)
    return np.asarray(answers)


@pytest.mark.parametrize("softmax", [True, False])
def test_steps_are_counted_one_by_one(capsys: Capture, folder: Path, softmax: bool) -> None:
    one, other = stepwise(softmax)
    argv = ["eval", "steps.circle", "--data", "steps.npz", "--against", "worse.circle", "--json"]
    figures = json.loads(call(capsys, *argv).out)
    assert figures["top1"] == pytest.approx(350 / 360)
    assert figures["agreement"] == pytest.approx(np.mean(one == other))
    assert figures["agreement"] < 1
    assert np.sum(figures["confusion"]) == 360
    bench = ["bench", "steps.circle", "--data", "steps.npz", "--json", "--num-runs", "2"]
    measured = json.loads(call(capsys, *bench, "--min-secs", "0", "--warmup-runs", "1").out)
    assert measured["top1"] == pytest.approx(350 / 360)


def test_diff_counts_steps_one_by_one(capsys: Capture, folder: Path) -> None:
    one, other = stepwise(softmax=True)
    argv = ["diff", "steps.circle", "worse.circle", "--data", "alone.npz", "--json"]
    (output,) = json.loads(call(capsys, *argv).out)["outputs"]
    assert output["top1_match"] == pytest.approx(np.mean(one == other))
    stepwise(softmax=False)
    (output,) = json.loads(call(capsys, *argv).out)["outputs"]
    assert "top1_match" not in output


def test_eval_refuses_steps_that_score_no_classes(capsys: Capture, folder: Path) -> None:
    stepwise(softmax=False)
    argv = ["eval", "steps.circle", "--data", "alone.npz", "--against", "worse.circle"]
    assert call(capsys, *argv).error(2).startswith("output 'fc2' scores no classes: luciole diff")


def test_eval_refuses_labels_of_another_number_of_steps(capsys: Capture, folder: Path) -> None:
    stepwise(softmax=True)
    np.save("labels.npy", np.zeros((60, 5), np.int64))
    argv = ["eval", "steps.circle", "--data", "alone.npz", "--labels", "labels.npy"]
    text = "the labels have shape [60, 5], the answers [60, 6]: one label for each answer is needed"
    assert call(capsys, *argv).error(2) == text
