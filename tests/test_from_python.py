"""Functions of ``luciole`` itself do what the programs do."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Graph, LucioleError, Model, TensorType
from luciole.ir.errors import ChoiceError, FormatError
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.quantize import Dequantize
from luciole.lquantizer import UniformOptions
from luciole.lquantizer.assignment.choosing import options_for
from luciole.schema.tables import QuantizationParameters
from tests.networks import network, random
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]
X = random(50, 60, 20)
DIGITS = Path(str(resources.files("luciole"))) / "demo_data" / "digits.circle"


@pytest.fixture
def labels() -> Array:
    """The answers of ``network()``, of which 15 of 60 are changed."""
    answers = luciole.run(network(), X)["fc2"].argmax(1)
    answers[:15] = (answers[:15] + 1) % 4
    return np.asarray(answers)


def coarse() -> Model:
    model = network()
    for value in model.graph.values:
        if value.name == "fc1/weights":
            assert value.data is not None
            value.set_data(np.round(value.data * 8) / 8)
    return model


def test_evaluate_counts_right_and_equal_answers(labels: Array) -> None:
    one, other = (luciole.run(m, X)["fc2"].argmax(1) for m in (network(), coarse()))
    told = luciole.evaluate(network(), X.astype(np.float64), labels.tolist(), against=coarse())
    assert (told.records, told.top1) == (60, 0.75)
    assert told.agreement == pytest.approx(np.mean(one == other))
    assert str(told).splitlines()[:2] == ["records    60", "top-1      75.00 %"]


def test_evaluate_measures_by_a_function_of_ones_own(labels: Array) -> None:
    def errors(answers: Array, right: Array) -> float:
        return -float(np.sum(answers.argmax(1) != right))

    told = luciole.evaluate(network(), X, labels, metric=errors)
    assert (told.metric, told.outputs) == (-15, [])


def test_evaluate_refuses_a_metric_without_right_answers() -> None:
    with pytest.raises(ChoiceError, match="a metric needs labels"):
        luciole.evaluate(network(), X, metric=lambda answers, right: 0.0)
    with pytest.raises(ChoiceError, match="there is no output 'nobody', only b"):
        luciole.evaluate(network(), X, output="nobody")


def test_diff_finds_what_the_program_prints(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    luciole.save(network(), "one.circle")
    luciole.save(coarse(), "two.circle")
    np.save("x.npy", X)
    argv = ("diff", "one.circle", "two.circle", "--data", "x.npy", "--json")
    printed = json.loads(call(capsys, *argv).out)
    told = luciole.diff("one.circle", "two.circle", X)
    assert told.to_json()["layers"] == printed["layers"]
    first, _, worst = str(told).splitlines()[:3]
    assert first == "3 layers over 60 records"
    assert worst.split()[0] == told.ranked()[0].name


def test_summary_is_what_the_program_prints(capsys: Capture) -> None:
    out = call(capsys, "dump", str(DIGITS), "--summary").out
    assert str(luciole.summary(DIGITS)).splitlines() == out.splitlines()
    assert luciole.summary(network()).file_bytes is None


def test_verify_lists_findings(tmp_path: Path) -> None:
    assert luciole.verify(network()) == []
    broken = network()
    broken.graph.ops.reverse()
    luciole.save(broken, tmp_path / "broken.circle", check=False)
    for source in (broken, tmp_path / "broken.circle"):
        assert [finding.code for finding in luciole.verify(source)] == ["UNDEFINED"] * 2


def test_view_names_the_kind_of_a_file(tmp_path: Path) -> None:
    for name, kind in (("net.tflite", "tflite"), ("net.circle", "circle")):
        luciole.save(network(), tmp_path / name)
        assert luciole.view(tmp_path / name).document["models"][0]["format"] == kind


def test_view_shows_a_result_beside_the_float_model(tmp_path: Path) -> None:
    result = luciole.quantize(network(), X, encode_bits=2)
    page = luciole.view(network(), result, data=X)
    page.save(tmp_path / "both.html")
    assert (tmp_path / "both.html").read_text("utf-8") == page.html
    assert page._repr_html_().startswith("<iframe")
    nodes = page.document["models"][1]["graphs"][0]["nodes"]
    (layer,) = [node for node in nodes if node.get("layer") == "fc1"]
    assert (layer["status"], layer["badge"]) == ("replaced", "levels:w2a2")
    assert {"snr_db", "mse"} <= layer["measures"].keys()
    assert layer["levels"]["input"]["histogram"]["source"] == "60 records"
    luciole.view(result).save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<svg")
    with pytest.raises(LucioleError, match=r"\.html or \.svg is needed"):
        page.save(tmp_path / "both.png")
    with pytest.raises(LucioleError, match="a picture shows one model"):
        page.save(tmp_path / "both.svg")


def test_view_measures_on_the_data_given_now_instead_of_the_reports() -> None:
    result = luciole.quantize(network(), X, encode_bits=2)
    few = X[:9]

    def errors(other: luciole.Model | luciole.Result) -> list[tuple[object, ...]]:
        nodes = luciole.view(network(), other, data=few).document["models"][1]["graphs"][0]["nodes"]
        return [tuple(n["measures"].get(k) for k in ("mse", "snr_db")) for n in nodes[1:-1]]

    assert errors(result) == errors(result.model)


@pytest.mark.parametrize("form", ["circle", "tflite", "onnx"])
def test_models_go_through_bytes(form: str) -> None:
    data = luciole.to_bytes(network(), form)
    again = luciole.load(data)
    (one,), (other,) = (luciole.run(m, X[:4]).values() for m in (network(), again))
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_load_refuses_bytes_of_no_model() -> None:
    with pytest.raises(FormatError, match="these bytes: not a"):
        luciole.load(b"nothing")


@pytest.mark.parametrize("other", [X.tolist(), X.astype(np.float64), X.astype(np.float64).tolist()])
def test_run_takes_what_numpy_would(other: object) -> None:
    interpreter = luciole.Interpreter(network())
    np.testing.assert_array_equal(interpreter.run(other)["fc2"], interpreter.run(X)["fc2"])


def test_run_quantizes_real_numbers() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (2,), TensorType.INT8)
    x.quantization = QuantizationParameters(
        scale=np.array([0.5], np.float32), zero_point=np.array([1])
    )
    graph.outputs = [graph.append(Dequantize(x), "y").output]
    interpreter = luciole.Interpreter(model)
    assert interpreter.run([1.0, -2.0])["y"].tolist() == [1.0, -2.0]
    assert interpreter.run(np.array([3, -3], np.int8))["y"].tolist() == [1.0, -2.0]
    with pytest.raises(LucioleError, match=r"element \[1\] of record 0 is nan: not finite"):
        luciole.diff(model, model, np.array([[1.0, np.nan]]))


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (None, "an array of numbers is needed, found NoneType"),
        ("text", "an array of numbers is needed"),
        ([[1.0], [1.0, 2.0]], "inhomogeneous"),
        (np.float32(3), r"given was \[\]"),
    ],
)
def test_run_refuses_what_is_no_array(contents: object, sentence: str) -> None:
    with pytest.raises(LucioleError, match=sentence):
        luciole.Interpreter(network()).run(contents)


def test_run_refuses_numbers_that_an_integer_does_not_hold() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.outputs = [graph.add_input("n", (1,), TensorType.INT8)]
    with pytest.raises(LucioleError, match="int8 does not hold all of the numbers"):
        luciole.Interpreter(model).run([300])


def test_print_shows_graphs_and_reports() -> None:
    model = luciole.load(DIGITS)
    lines = str(model.graph).splitlines()
    assert lines[0].startswith("graph 'main'(")
    assert "FULLY_CONNECTED(" in lines[-4]
    report = luciole.quantize(network(), X, encode_bits=2).report
    text = str(report)
    assert text.startswith(repr(report))
    assert all(cell in text for row in report.rows() for cell in row)
    assert "proof: " in text
    assert str(report.proof) == text[text.index("proof: ") :]


def test_every_function_lists_its_parameters() -> None:
    """For ``help`` and completion: nothing but names, and each has a docstring."""
    for name in luciole.__all__:
        function = getattr(luciole, name)
        if inspect.isfunction(function):
            kinds = {p.kind for p in inspect.signature(function).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name
            assert function.__doc__, name


def test_help_of_quantize_names_the_default_and_the_calls_of_track() -> None:
    text, calls = inspect.getdoc(luciole.quantize) or "", list[tuple[str, int]]()

    def track(what: str, total: int) -> Callable[[int], None]:
        return lambda done: calls.append((f"{total} {what}", done))

    luciole.run(network(), X, batch=60, track=track)
    default = options_for({})
    assert isinstance(default, UniformOptions)
    assert f'("{default.scheme}")' in text.partition("``scheme``")[0]
    assert "``track(what, total)``" in text
    assert calls == [("60 records", 60)]


def test_one_name_will_do_for_several() -> None:
    model, name = network(), "fc1"
    for one, several in (
        (luciole.extract(model, kinds="TANH"), luciole.extract(model, kinds=["TANH"])),
        (luciole.extract(model, names=name), luciole.extract(model, names=[name])),
        (luciole.cut(model, outputs=name), luciole.cut(model, outputs=[name])),
    ):
        assert str(one.graph) == str(several.graph)


untyped: Any = luciole
loop: Any = While


def graph_of(model: Model) -> Any:
    """The graph, without types, to hand wrong arguments to."""
    return model.graph


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda m, x: untyped.run(m, None),
            "the data for 'x' is NoneType: an array is needed, whose first axis",
        ),
        (
            lambda m, x: untyped.run(m, "text"),
            "the data for 'x' is str: an array is needed, whose first axis",
        ),
        (
            lambda m, x: untyped.run(m, [[1.0], [1.0, 2.0]]),
            "the data for 'x' is no array: ",
        ),
        (lambda m, x: untyped.run(m, x, 5), "a name or a list of names is needed, found int"),
        (lambda m, x: untyped.run(None, x), "NoneType"),
        (lambda m, x: untyped.save(m, 5), "a path to save to is needed, found int"),
        (lambda m, x: untyped.resize(m, 5), "shapes: a dictionary by input is needed, found int"),
        (lambda m, x: untyped.resize(m, {"x": "y"}), "a list of extents is needed, found str"),
        (lambda m, x: untyped.optimize(m, passes=5), "passes: a name or a list .* found int"),
        (lambda m, x: untyped.evaluate(m, x, 5), "labels are an array .* found 5"),
        (lambda m, x: untyped.load("a.onnx", batch="x"), "batch: a whole number .* found str"),
        (lambda m, x: untyped.Interpreter(m, num_threads="2"), "num_threads: a whole number"),
        (lambda m, x: untyped.Interpreter(model_content="x"), "the bytes of a model .* found str"),
        (lambda m, x: untyped.quantize(m, x, encode_bits=2.5), "encode_bits: .* found float"),
        (lambda m, x: untyped.quantize(m, x, config=5), "config: a file's path .* found int"),
        (lambda m, x: untyped.view(5), "a model or its path is needed, found int"),
        (
            lambda m, x: graph_of(m).insert_after(3, Relu(m.graph.inputs[0]), "r"),
            "an operator of the",
        ),
        (lambda m, x: graph_of(m).insert_after(m.graph.ops[0], 3, "r"), "an operator to insert"),
        (lambda m, x: graph_of(m).remove(Relu(m.graph.inputs[0])), "Relu .* is not in this graph"),
        (lambda m, x: graph_of(m).remove(3), "an operator of the graph is needed, found int"),
        (lambda m, x: loop(untyped), "^While.inputs: a list of tensors is needed, found module"),
        (lambda m, x: setattr(loop([]), "inputs", untyped), "^While.inputs: a list of tensors"),
        (lambda m, x: loop([]).set_operands(untyped), "^While.operands: a list of tensors"),
        (lambda m, x: setattr(m.graph, "outputs", untyped), "^Graph.outputs: a list of tensors"),
        (lambda m, x: Relu(untyped), "Relu: a tensor as operand is needed, found module"),
        (
            lambda m, x: graph_of(m).inputs[0].replace_with(3),
            "a tensor to use .* found int",
        ),
        (lambda m, x: graph_of(m).add_input("x", (1, "a")), "'x': a whole number as extent"),
        (lambda m, x: graph_of(m).model.add_graph("main"), "a Graph to add is needed, found str"),
        (lambda m, x: luciole.run(Model(), x), "the model has no graph: add_graph adds one"),
        (lambda m, x: untyped.implant(m, 5), "parameters: a path or a dictionary .* found int"),
        (lambda m, x: untyped.search(m, x, 5), "output: a path is needed, found int"),
        (lambda m, x: untyped.search(m, x, "s", 5), "SearchOptions or SeedOptions .* found int"),
        (
            lambda m, x: untyped.quantize(m, x, scheme="mixed", target_drop="1"),
            "target_drop: a number is needed, found str",
        ),
        (lambda m, x: untyped.quantize(m, x, proof="maybe"), "^proof: True or False .* found str"),
        (lambda m, x: untyped.quantize(m, x, encode_bits=True), "^encode_bits: .* found bool"),
        (
            lambda m, x: luciole.lquantizer.FitOptions(encode_bits=True).default,
            "^encode_bits: .* found bool",
        ),
        (lambda m, x: untyped.sensitivity(m, x, symmetric=1), "^symmetric: True .* found int"),
        (lambda m, x: untyped.load("a.onnx", unroll="no"), "^unroll: True or False .* found str"),
        (lambda m, x: untyped.save(m, "a.onnx", exact=1), "^exact: True or False .* found int"),
        (lambda m, x: untyped.optimize(m, preset=5), "^preset: a text is needed, found int"),
        (lambda m, x: untyped.view(m, horizontal="yes"), "^horizontal: True .* found str"),
        (lambda m, x: untyped.run(m, x, compiled="no"), "^compiled: True or False .* found str"),
        (lambda m, x: untyped.run(m, x, track=5), r"^track: a function track\(what, total\) is n"),
        (lambda m, x: untyped.run(m, x, [5]), "^outputs: a name or a list of names .* found int"),
        (
            lambda m, x: untyped.quantize(m, x, x),
            r"^options: .* \(right answers go to labels=\)",
        ),
        (lambda m, x: untyped.load(DIGITS, shapes=[1, 64]), "^shapes: a dictionary .* found list"),
        (lambda m, x: untyped.view(m, report="text"), "^report: a Report .* found str"),
        (lambda m, x: untyped.View({}, "").save(5), "^path: a path is needed, found int"),
        (lambda m, x: untyped.optimize(m, [5]), "^passes: a name or a list of names .* found int"),
        (lambda m, x: untyped.optimize(m, without="nosuch"), "^no pass is called 'nosuch'"),
        (lambda m, x: untyped.extract(m, numbers=3), "^numbers: a list of whole numbers is needed"),
        (lambda m, x: untyped.cut(m, outputs="nosuch"), "^no tensor is called 'nosuch'"),
        (lambda m, x: untyped.split(m, 5), "^at: a name or a list of names is needed, found int"),
        (lambda m, x: untyped.partition(m, 5), "^groups: a path is needed, found int"),
        (
            lambda m, x: untyped.finetune(m, m, x, epochs=1, settings=5),
            "^settings: FinetuneSettings or UniformSettings is needed, found int",
        ),
        (lambda m, x: untyped.implant(m, ranges=5), "^ranges: a file's path, Ranges or .* int"),
        (lambda m, x: untyped.compile(m, "c", 5), "^name: a text is needed, found int"),
        (lambda m, x: untyped.compile(m, 5, "c"), "^folder: a path is needed, found int"),
        (
            lambda m, x: untyped.compile(m, "c", "c", preprocess="x/16"),
            "^preprocess: a function of an array .* found str",
        ),
        (lambda m, x: untyped.Interpreter(m, memory_limit="1GB"), "^memory_limit: a whole number"),
        (lambda m, x: untyped.Interpreter(m, graph="main"), "^graph: a Graph of the model .* str"),
        (lambda m, x: untyped.quantize(m, x, granularity=5), "^granularity: a text is needed"),
        (lambda m, x: untyped.quantize(m, x, rescale=5), "^rescale: a text is needed, found int"),
        (lambda m, x: untyped.to_bytes("x.circle"), "^model: a Model .* found str"),
    ],
)
def test_a_function_refuses_an_argument_of_another_type(
    call: Callable[[Model, Array], object], sentence: str
) -> None:
    with pytest.raises(LucioleError, match=sentence):
        call(network(), random(0, 40, 20))
