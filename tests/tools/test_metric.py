"""``--metric FILE.py:FUNCTION`` in all programs that judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model
from tests.networks import network, random
from tests.tools.running import Outcome, call

Capture = pytest.CaptureFixture[str]
EXAMPLE = Path(__file__).parents[2] / "examples" / "metrics.py"
RMSE = "--metric metrics.py:negative_rmse"
X = random(50, 60, 20)


def run_model(model: Model, x: Array = X) -> Array:
    interpreter = luciole.Interpreter(model)
    return np.concatenate([next(iter(interpreter.run({"x": one[None]}).values())) for one in x])


def error(model: Model, targets: Array, x: Array = X) -> float:
    return float(np.sqrt(np.square(run_model(model, x).reshape(targets.shape) - targets).mean()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A regression, its targets a little beside what it gives, and the example's metrics."""
    monkeypatch.chdir(tmp_path)
    model = network((20, 32, 1))
    luciole.save(model, "net.circle")
    targets = run_model(model).reshape(-1) + random(51, 60) / 20
    np.savez("data.npz", x_train=X, y_train=targets)
    shutil.copy(EXAMPLE, "metrics.py")
    return tmp_path


def told(capsys: Capture, words: str) -> Outcome:
    return call(capsys, *words.split())


def targets() -> Array:
    return np.asarray(np.load("data.npz")["y_train"])


def test_eval_prints_the_figure(folder: Path, capsys: Capture) -> None:
    outcome = told(capsys, f"eval net.circle --data data.npz:x_train {RMSE}")
    wanted = -error(luciole.load("net.circle"), targets())
    assert f"negative_rmse {wanted:.6g}" in outcome.out
    assert (outcome.code, "top-1" in outcome.out) == (0, False)


def test_eval_measures_another_model_beside_it(folder: Path, capsys: Capture) -> None:
    model = luciole.quantize("net.circle", X, scheme="w4a8", rounding="nearest").model
    luciole.save(model, "q.tflite")
    words = f"eval net.circle --data data.npz:x_train --against q.tflite {RMSE} --json"
    figures = json.loads(told(capsys, words).out)["metric"]
    assert figures["figure"] == pytest.approx(-error(luciole.load("net.circle"), targets()))
    assert figures["against"] == pytest.approx(-error(model, targets()))


def test_eval_takes_the_other_models_outputs_for_right_without_labels(
    folder: Path, capsys: Capture
) -> None:
    np.save("x.npy", X)
    words = f"eval net.circle --data x.npy {RMSE}"
    assert "needs --labels, or --against" in told(capsys, words).error(2)
    outcome = told(capsys, f"{words} --against net.circle")
    assert "negative_rmse -0 by the outputs of net.circle" in outcome.out


def test_the_proof_measures_the_file(folder: Path, capsys: Capture) -> None:
    words = f"quantize net.circle -o q.tflite --scheme int8 --data data.npz:x_train {RMSE}"
    outcome = told(capsys, f"{words} --labels y_train --report r.json")
    held = np.arange(9, 60, 10)
    file, reference = (
        -error(luciole.load(name), targets()[held], X[held]) for name in ("q.tflite", "net.circle")
    )
    line = f"negative_rmse {file:.6g} where the float network has {reference:.6g}"
    assert line in outcome.out
    metric = json.loads(Path("r.json").read_text())["proof"]["metric"]
    assert metric["file"] == pytest.approx(file, rel=1e-5)


@pytest.mark.usefixtures("layers_measured_once")
@pytest.mark.parametrize(
    "words",
    [
        "quantize net.circle -o q.circle --scheme mixed",
        "quantize net.circle -o q.circle --scheme minifloat --search",
        "quantize net.circle -o q.circle --auto_bits",
    ],
)
def test_a_target_is_in_the_metrics_unit(folder: Path, capsys: Capture, words: str) -> None:
    rest = f"--data data.npz:x_train --labels y_train {RMSE} --no-proof"
    sizes = []
    for target in (0.3, 0.002):
        outcome = told(capsys, f"{words} {rest} --target-drop {target} --report r.json")
        assert outcome.code == 0
        assert f"of negative_rmse lost where {target:g} may be" in outcome.out
        judged = json.loads(Path("r.json").read_text())["judged"]
        assert judged["drop"] <= target
        sizes.append(Path("q.circle").stat().st_size)
    assert sizes[0] < sizes[1]
    assert "give --target-drop in it" in told(capsys, f"{words} {rest}").err or "mixed" in words


def test_labels_judge_a_target_without_a_metric(capsys: Capture, tmp_path: Path) -> None:
    model, path = network((20, 48, 4)), str(tmp_path / "net.circle")
    luciole.save(model, path)
    np.savez(tmp_path / "d.npz", x_train=X, y_train=run_model(model).argmax(-1))
    data = f"{tmp_path / 'd.npz'}:x_train --labels y_train"
    words = f"quantize {path} -o {tmp_path / 'q.tflite'} --scheme mixed --target-drop 30"
    outcome = told(capsys, f"{words} --data {data}")
    assert "points of right answers lost where 30 may be" in outcome.out


def test_mixed_refuses_a_metric_without_a_target(folder: Path, capsys: Capture) -> None:
    words = f"quantize net.circle -o q.tflite --scheme mixed --data data.npz:x_train {RMSE}"
    assert "give a target_drop" in told(capsys, words).error()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing.py:f", "nothing.py cannot be read"),
        ("metrics.py:nobody", "a function nobody is needed"),
        ("metrics.py", "FILE.py:function is needed"),
        ("bad.py:f", "cannot be loaded in line 1: SyntaxError"),
        ("odd.py:raises", "failed in line 2: ValueError: never"),
        ("odd.py:text", "returned 'good': a finite number is needed"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        "eval net.circle --data data.npz:x_train",
        "quantize net.circle -o q.tflite --scheme int8 --data data.npz:x_train",
        "lquantizer --input-model net.circle --output-model q.circle --input-data data.npz:x_train",
    ],
)
def test_a_metric_that_does_not_work_is_refused_in_a_line(
    folder: Path, capsys: Capture, words: str, source: str, message: str
) -> None:
    Path("bad.py").write_text("def f(:")
    Path("odd.py").write_text(
        "def raises(answers, labels):\n    raise ValueError('never')\n\n\n"
        "def text(answers, labels):\n    return 'good'\n"
    )
    assert message in told(capsys, f"{words} --metric {source}").error()
    assert not Path("q.tflite").exists()


def test_the_page_shows_the_example() -> None:
    page = (EXAMPLE.parents[1] / "docs/how-to/judge.md").read_text()
    shown = page.partition('title="examples/metrics.py"\n')[2].partition("```")[0]
    assert shown.rstrip() in EXAMPLE.read_text()


def test_the_mean_of_intersection_over_union_is_that_of_sets() -> None:
    from examples.metrics import mean_iou

    generator = np.random.default_rng(3)
    scores = generator.random((4, 6, 5, 3)).astype(np.float32)
    labels = generator.integers(0, 3, (4, 6, 5))
    places = list(np.ndindex(labels.shape))
    shares = []
    for number in range(3):
        one = {place for place in places if scores[place].argmax() == number}
        other = {place for place in places if labels[place] == number}
        shares.append(len(one & other) / len(one | other))
    assert mean_iou(scores, labels) == pytest.approx(np.mean(shares))
    assert mean_iou(scores, scores) == 1
