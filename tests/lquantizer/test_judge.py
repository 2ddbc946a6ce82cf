"""The judge: what a drop counts, which records judge, and metrics of a user's own."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter.errors import InputError
from luciole.ir import Array, Model
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.judging.judge import ANSWERS, RIGHT, VARIANCE, Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Judges, Split, is_judge, judging_places
from tests.imports import ROOT, module_of
from tests.networks import network, random, two_outputs

X = random(3, 50, 20)
EXAMPLE = '''"""A metric for tests."""
import math
from dataclasses import dataclass

@dataclass
class Scale:
    by: float

def negative_error(answers, labels):
    return -Scale(2.0).by * float(abs(answers - labels).mean())

def raises(answers, labels):
    return {}["nothing"]

def text(answers, labels):
    return "good"

def nothing(answers, labels):
    return math.nan

several = [1, 2]
'''


def quantized(scheme: str = "w4a8") -> Model:
    return luciole.quantize(network(), X, scheme=scheme, rounding="nearest", proof=False).model


def numbers(model: Model, x: Array = X) -> Array:
    interpreter, name = luciole.Interpreter(model), model.graph.inputs[0].name
    return np.concatenate([next(iter(interpreter.run({name: one[None]}).values())) for one in x])


def file_of(folder: Path, text: str = EXAMPLE) -> str:
    path = folder / "my_metric.py"
    path.write_text(text)
    return str(path)


# ---------------------------------------------------------------------- which records judge
@pytest.mark.parametrize("count", [2, 4, 5, 12, 50, 4999, 8000])
def test_the_last_of_each_five_records_judges(count: int) -> None:
    split = Split.for_choices({"x": np.arange(count)}, np.arange(count) * 3)
    judging, teaching = map(np.asarray, (split.judges.records["x"], split.learned["x"]))
    if count < 5000:
        assert judging.tolist() == (list(range(4, count, 5)) or [count - 1])
    else:
        assert len(judging) == 1000
        assert set(judging) <= set(range(4, count, 5))
    assert sorted([*judging, *teaching]) == list(range(count))
    assert split.judges.labels is not None
    assert split.labels is not None
    assert (split.judges.labels == 3 * judging).all()
    assert (split.labels == 3 * teaching).all()


def test_one_record_cannot_be_parted() -> None:
    with pytest.raises(QuantizeError, match="at least 2 records"):
        Split.for_choices({"x": np.arange(1)})


def test_labels_are_as_many_as_records() -> None:
    with pytest.raises(QuantizeError, match="10 records have 3 labels"):
        Split.for_choices({"x": np.arange(10)}, np.arange(3))


def test_places_and_numbers_say_the_same() -> None:
    assert judging_places(23).tolist() == np.flatnonzero(is_judge(np.arange(23))).tolist()


# ---------------------------------------------------------------------- what a drop counts
def test_answers_that_change_are_counted_without_labels() -> None:
    model, judge = quantized(), Judge(network(), Judges({"x": X}))
    changed = np.mean(numbers(model).argmax(-1) != numbers(network()).argmax(-1))
    assert judge.unit == ANSWERS
    assert judge.judge(model).drop == pytest.approx(100 * changed)
    assert judge.judge(network()).drop == 0


def test_right_answers_that_are_lost_are_counted_with_labels() -> None:
    labels = numbers(network()).argmax(-1)
    labels[:10] = (labels[:10] + 1) % 4
    model, judge = quantized(), Judge(network(), Judges({"x": X}, labels=labels))
    lost = judge.judge(model)
    right = np.mean(numbers(model).argmax(-1) == labels)
    assert judge.unit == RIGHT
    assert lost.right == pytest.approx(right)
    assert lost.drop == pytest.approx(100 * (0.8 - right))


def test_the_variance_is_counted_where_there_are_no_classes() -> None:
    model, judge = network((20, 16, 1)), Judge(network((20, 16, 1)), Judges({"x": X}))
    made = luciole.quantize(model, X, scheme="w4a8", rounding="nearest", proof=False).model
    wanted, found = numbers(model).astype(float), numbers(made)
    assert judge.unit == VARIANCE
    error = 100 * np.square(found - wanted).mean() / wanted.var()
    assert judge.judge(made).drop == pytest.approx(error, rel=1e-5)


def test_labels_of_another_shape_or_class_are_refused() -> None:
    with pytest.raises(InputError, match="one label for each answer"):
        Judge(network(), Judges({"x": X}, labels=np.zeros((50, 7), int)))
    wrong = np.full(50, 1)
    wrong[6] = 255
    text = "of those that judge, record 6 has label 255, output 'b' has 4 .*a metric of your own"
    with pytest.raises(QuantizeError, match=text):
        Judge(network(), Judges({"x": X}, labels=wrong))
    with pytest.raises(QuantizeError, match="labels need classes"):
        Judge(network((20, 1)), Judges({"x": X}, labels=np.zeros(50, int)))


def test_quantized_ends_are_judged_as_real_numbers() -> None:
    judge = Judge(network(), Judges({"x": X}))
    ends: dict[str, Any] = {"input_type": "int8", "output_type": "int8"}
    model = luciole.quantize(network(), X, scheme="int8", proof=False, **ends).model
    assert judge.judge(model).noise < 0.01


def test_one_module_reads_the_answers() -> None:
    """``interpreter.answers`` alone takes the largest of an output's numbers: elsewhere it is of
    other things.
    """
    others = {
        "luciole.interpreter.answers",
        "luciole.lquantizer.formats.integers",
        "luciole.lquantizer.search.thinning",
        "luciole.tools.confusion",
    }
    rooms = ("interpreter", "lquantizer", "tools")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    found = {module_of(p) for p in paths if re.search(r"\bargmax\(", p.read_text())}
    assert "luciole.interpreter.answers" in found
    assert found <= others


# ---------------------------------------------------------------------- metrics
def test_a_metric_is_loaded_and_counts_in_its_own_unit(tmp_path: Path) -> None:
    metric = Metric.of(f"{file_of(tmp_path)}:negative_error")
    targets = random(5, 50, 4)
    model, judge = quantized(), Judge(network(), Judges({"x": X}, labels=targets), metric)
    lost = judge.judge(model)
    before, after = (-2 * np.abs(numbers(m) - targets).mean() for m in (network(), model))
    assert judge.unit == "of negative_error lost"
    assert lost.drop == pytest.approx(before - after, abs=1e-6)
    assert lost.right is None


def test_a_metric_compares_with_the_float_network_without_labels() -> None:
    judge = Judge(network(), Judges({"x": X}), Metric.of(lambda a, b: -float(np.abs(a - b).max())))
    model = quantized()
    worst = np.abs(numbers(model) - numbers(network())).max()
    assert judge.judge(model).drop == pytest.approx(worst, rel=1e-5)


def test_a_metric_need_not_bear_what_is_no_number() -> None:
    def careful(answers: Array, labels: Array) -> float:
        assert np.isfinite(answers).all()
        return 1.0

    broken = network()
    bias = broken.graph.ops[-1].operands[2]
    assert bias is not None
    bias.set_data(np.full(bias.dims, np.nan, np.float32))
    judge = Judge(network(), Judges({"x": X}), Metric.of(careful))
    assert judge.judge(broken).drop == np.inf
    assert judge.judge(network()).drop == 0


def test_a_metric_gets_several_outputs_by_name() -> None:
    seen: list[Mapping[str, Array]] = []

    def first(answers: Mapping[str, Array], labels: Mapping[str, Array]) -> float:
        seen.append(answers)
        return -float(np.abs(answers["y"] - labels["y"]).mean())

    model = two_outputs()
    names = [v.name for v in model.graph.outputs]
    model.graph.outputs[0].name = "y"
    Judge(model, Judges({"x": X}), Metric.of(first))
    assert seen[0].keys() == {"y", *names[1:]}
    assert len(seen[0]["y"]) == 50


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nobody", "a function nobody is needed, nothing is there"),
        ("several", "a function several is needed, list is there"),
    ],
)
def test_a_metric_refuses_what_is_no_function(tmp_path: Path, function: str, message: str) -> None:
    with pytest.raises(QuantizeError, match=message):
        Metric.of(f"{file_of(tmp_path)}:{function}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", r"cannot be loaded in line 1: SyntaxError"),
        ("import math\n1 / 0", r"cannot be loaded in line 2: ZeroDivisionError"),
        ("import not_there_at_all", r"cannot be loaded in line 1: ModuleNotFoundError"),
        ("raise SystemExit(3)", r"cannot be loaded in line 1: SystemExit: 3"),
    ],
)
def test_a_metric_refuses_a_file_that_does_not_run(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(QuantizeError, match=message):
        Metric.of(f"{file_of(tmp_path, text)}:f")


@pytest.mark.parametrize("source", ["metric.py", "m.py:", ":f", "m.py:1f"])
def test_a_metric_refuses_other_texts(source: str) -> None:
    with pytest.raises(QuantizeError, match=r"FILE.py:function is needed"):
        Metric.of(source)


def test_a_metric_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="cannot be read: No such file"):
        Metric.of(f"{tmp_path / 'no.py'}:f")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", r"metric raises failed in line 13: KeyError: 'nothing'"),
        ("text", r"metric text returned 'good': a finite number is needed"),
        ("nothing", r"metric nothing returned nan: a finite number is needed"),
    ],
)
def test_a_metric_refuses_what_is_no_number(tmp_path: Path, function: str, message: str) -> None:
    metric = Metric.of(f"{file_of(tmp_path)}:{function}")
    with pytest.raises(QuantizeError, match=message):
        metric(X, X)


def test_a_metric_of_a_file_goes_to_other_processes_without_it(tmp_path: Path) -> None:
    source = file_of(tmp_path)
    metric = Metric.of(f"{source}:negative_error")
    sent = pickle.dumps(metric)
    Path(source).unlink()
    assert pickle.loads(sent)(X, X + 1) == pytest.approx(-2.0)


def test_a_metric_may_import_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("HALF = 0.5")
    text = "from beside_it import HALF\ndef f(answers, labels): return HALF"
    assert Metric.of(f"{file_of(tmp_path, text)}:f")(X, X) == 0.5
