"""``lquantizer``: what each option does to the file that is written, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import luciole.api
from luciole.ir import Array
from luciole.ir.analysis.weights import learned_weights
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.elementwise_unary import Ceil
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer import QuantizeError, Report
from luciole.tools import lquantizer
from luciole.tools.quantizing.shown import show
from tests.networks import network, random
from tests.support import data_path
from tests.tools.running import Outcome, call, left_behind, widths

Capture = pytest.CaptureFixture[str]
X = random(50, 60, 20)
X_MANY = random(50, 400, 20)
AUTO = ("--auto_bits", "--no-proof")
"""Finds widths, without a proof so that all records teach: one measurement serves all targets."""


def quantize(capsys: Capture, *more: str, data: str = "train.npy") -> Outcome:
    """Run the program in the folder and check that it ended well."""
    outcome = attempt(capsys, *more, data=data)
    assert outcome.code == 0, outcome
    return outcome


def attempt(capsys: Capture, *more: str, data: str = "train.npy") -> Outcome:
    files = ("--input_model", "model.circle", "--output_model", "answer.circle")
    return call(capsys, *files, "--input_data", data, *more, main=lquantizer.main)


def outputs(path: str = "answer.circle", x: Array = X) -> Array:
    """What a file's network computes, run as anybody would."""
    return luciole.Interpreter(path).run(x)["fc2"]


def loss(x: Array = X) -> float:
    """The answer's mean squared error against the float network, relative to its mean square."""
    wanted = outputs("model.circle", x).astype(np.float64)
    return float(np.mean((outputs(x=x) - wanted) ** 2) / np.mean(wanted**2))


def file_size() -> int:
    return Path("answer.circle").stat().st_size


# ------------------------------------------------------------------------------ automatic widths
def test_a_layer_that_was_measured_and_stays_float_is_named(capsys: Capture) -> None:
    tried: dict[str, float | int | str] = {
        "layer": "block/fc2",
        "option": "levels:w1a8",
        "bytes": 1200,
        "error": 0.25,
    }
    show(Report(options=[tried]), None, "answer.circle", as_json=False)
    assert re.search(r"fc2 +levels:w1a8 +1,200 +0\.25", capsys.readouterr().out)


@pytest.mark.usefixtures("layers_measured_once")
def test_automatic_widths_fit_into_a_file_size(capsys: Capture, folder: Path) -> None:
    outcome = quantize(capsys, *AUTO, "--target_size", "1700")
    assert file_size() <= 1700
    assert "what each layer alone loses under each option" in outcome.out
    outcome = quantize(capsys, *AUTO, "--target_size", "2.3KB", "--json")
    assert 1700 < file_size() <= 2300
    options = json.loads(outcome.out)["options"]
    errors = {(o["layer"], o["option"]): o["error"] for o in options}
    for layer in ("fc1", "fc2"):
        few, more = errors[layer, "levels:w1a8"], errors[layer, "levels:w4a8"]
        assert few > more > errors[layer, "dynamic:int8"]
    best = loss()
    quantize(capsys, "--encode_bits", "3", "--no-proof")
    assert file_size() <= 2300
    assert best < loss(), "the bytes are used for less loss than one width everywhere has"


@pytest.mark.usefixtures("layers_measured_once")
def test_automatic_widths_keep_the_answers(capsys: Capture, folder: Path) -> None:
    """A larger share of changed answers allows a smaller file; what is promised is kept on the
    records that judged, every fifth. Without a target it is one answer in a hundred.
    """
    wanted = outputs("model.circle").argmax(1)
    sizes = []
    for target in (None, "100"):
        how = () if target is None else ("--target_drop", target)
        outcome = quantize(capsys, *AUTO, *how, "--json")
        assert json.loads(outcome.out)["judged"]["target"] == float(target or 1)
        changed = 100 * np.mean(outputs().argmax(1) != wanted, where=np.arange(60) % 5 == 4)
        assert changed <= float(target or 1) or "bits change" in outcome.err
        sizes.append(file_size())
    assert sizes[0] >= sizes[1], "a network so small has no smaller layers than int8 ones"


@pytest.mark.usefixtures("layers_measured_once")
def test_lquantizer_refuses_a_size_that_nothing_fits_into(capsys: Capture, folder: Path) -> None:
    before = left_behind(folder)
    text = attempt(capsys, *AUTO, "--target_size", "300").error(1)
    assert text.startswith("no allocation fits into 300 bytes: the smallest takes ")
    assert left_behind(folder) == before


# ---------------------------------------------------------------------------------- other choices
def test_weights_only_is_one_s_layer_with_few_levels(capsys: Capture, folder: Path) -> None:
    quantize(capsys, "--weights_only", "--weight_bits", "2")
    layers = [op for op in luciole.load("answer.circle").graph.ops if op.kind.startswith("BCQ")]
    value = np.tanh(products(layers[0], X, 20))
    np.testing.assert_allclose(outputs(), products(layers[1], value, 16), rtol=1e-4, atol=1e-5)
    assert 0 < loss() < 0.1


def products(op: object, x: Array, n: int) -> Array:
    """x times a layer's weights of at most four levels in each row, plus its bias."""
    assert isinstance(op, BCQFullyConnected)
    found = learned_weights(op)
    assert found is not None
    weights = found.values()[:, :n]
    assert max(len(np.unique(row)) for row in weights) <= 4
    assert op.bias is not None
    assert op.bias.data is not None
    return np.asarray(x @ weights.T + op.bias.data)


def test_an_lstm_is_unrolled_and_its_steps_share_few_bits(capsys: Capture, folder: Path) -> None:
    model = data_path("models/mnist_lstm_fp32.tflite")
    x = random(3, 8, 28, 28)
    np.save("rows.npy", x)
    outcome = call(
        capsys,
        *("--input_model", model, "--output_model", "answer.circle", "--input_data", "rows.npy"),
        *("--unroll_lstm", "--encode_bits", "4", "--input_bits", "8"),
        main=lquantizer.main,
    )
    assert outcome.code == 0, outcome
    kinds = [op.kind for op in luciole.load("answer.circle").graph.ops]
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" not in kinds
    assert kinds.count("LQ_FULLY_CONNECTED") == 1 + 27 + 1
    grew = Path("answer.circle").stat().st_size >= model.stat().st_size
    assert ("warning: the file is not smaller, " in outcome.err) == grew
    assert ("an unrolled LSTM has operators for each step" in outcome.err) == grew
    wanted, found = (
        np.concatenate([next(iter(run(one[None]).values())) for one in x])
        for run in (luciole.Interpreter(path).run for path in (model, "answer.circle"))
    )
    assert np.mean((found - wanted) ** 2) < 0.1 * np.mean(wanted**2)


def test_the_first_records_alone_are_used(capsys: Capture, folder: Path) -> None:
    quantize(capsys, "--calibration", "25")
    first = Path("answer.circle").read_bytes()
    np.save("first.npy", X[:25])
    quantize(capsys, "--no-proof", data="first.npy")
    assert Path("answer.circle").read_bytes() == first
    quantize(capsys)
    assert Path("answer.circle").read_bytes() != first


def test_a_config_has_the_last_word_on_widths(capsys: Capture, folder: Path) -> None:
    rules = [{"regex": "fc.", "weight_bits": 3}, {"name": "fc2", "input_bits": 4}]
    Path("bits.json").write_text(json.dumps({"encode_bits": 2, "layers": rules}))
    quantize(capsys, "--encode_bits", "1", "--config", "bits.json", "--no-proof")
    assert widths() == [("act1", 2, 3), ("fc2", 4, 3)]
    fine = loss()
    Path("bits.json").write_text(json.dumps({"layers": [{"name": "fc1", "skip": True}]}))
    quantize(capsys, "--encode_bits", "2", "--recipe", "bits.json", "--no-proof")  # its old name
    kinds = [type(op) for op in luciole.load("answer.circle").graph.ops]
    assert FullyConnected in kinds
    assert 0 < fine < 0.2
    assert 0 < loss() < 0.2


# ------------------------------------------------------------------------------------ fine-tuning
def test_fine_tuning_brings_the_answers_closer(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("tensorflow")
    np.save("train.npy", X_MANY)
    quantize(capsys, "--encode_bits", "1", "--no-proof")
    fresh = random(60, 400, 20)
    before, fitted = loss(fresh), Path("answer.circle").read_bytes()
    tune = ("--finetune", "5", "--learning_rate", "0.01")
    how = ("--encode_bits", "1", *tune, "--no-proof", "--report", "report.json")
    outcome = quantize(capsys, *how)
    assert widths() == [("act1", 1, 1), ("fc2", 1, 1)]
    assert Path("answer.circle").read_bytes() != fitted
    assert loss(fresh) < before
    assert outcome.err.count("epoch ") >= 5
    assert "fine-tuning kept epoch " in outcome.err
    report = json.loads(Path("report.json").read_text())
    assert [epoch["epoch"] for epoch in report["finetuning"]] == [0, 1, 2, 3, 4, 5]
    assert report["bytes_after"] == file_size()
    stages = [layer["stages"] for layer in report["layers"]]
    assert all(list(s) == ["baseline", "offset", "output_aware", "fine_tuned"] for s in stages)
    assert [layer["snr_db"] for layer in report["layers"]] == [s["fine_tuned"] for s in stages]
    held = X_MANY[4::5][4::5]
    wanted = outputs("model.circle", held).astype(np.float64)
    ratio = 10 * np.log10(np.mean(wanted**2) / np.mean((outputs(x=held) - wanted) ** 2))
    assert stages[-1]["fine_tuned"] == pytest.approx(ratio, abs=0.01)
    assert "tuned" in outcome.out.splitlines()[1].split()


@pytest.mark.usefixtures("layers_measured_once")
def test_automatic_widths_are_fine_tuned_in_a_file_no_larger(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("tensorflow")
    np.save("many.npy", X_MANY)
    target = (*AUTO, "--target_size", "1900", "--finetune", "4", "--finetune_data", "many.npy")
    outcome = quantize(capsys, *target, "--learning_rate", "0.01", "--report", "report.json")
    assert file_size() <= 1900
    assert loss(random(60, 400, 20)) < 0.5
    layers = json.loads(Path("report.json").read_text())["layers"]
    learned = [layer for layer in layers if layer["skipped"] is None]
    assert learned
    assert all(layer["weight_bits"] <= 4 and "fine_tuned" in layer["stages"] for layer in learned)
    assert "fine-tuning kept epoch " in outcome.err


def test_fine_tuning_that_gains_nothing_is_a_warning(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("tensorflow")
    luciole.save(network((20, 4)), "model.circle")
    quantize(capsys, "--encode_bits", "2")
    fitted = Path("answer.circle").read_bytes()
    outcome = quantize(capsys, "--encode_bits", "2", "--finetune", "1", "--learning_rate", "1e3")
    assert "luciole: warning: fine-tuning gained nothing, the model is as it was" in outcome.err
    assert Path("answer.circle").read_bytes() == fitted
    assert "tuned" not in outcome.out.splitlines()[1].split()


def test_fine_tuning_trains_on_all_records_whatever_calibration_takes_or_on_other_data(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    np.save("train.npy", X_MANY)
    seen: list[Array] = []

    def watching(student: object, teacher: object, data: Mapping[str, Array], **_: object) -> None:
        seen.append(data["x"])
        raise QuantizeError("that is enough")

    monkeypatch.setattr(luciole.api, "finetune", watching)
    for more, count in ([], 400), (["--finetune_data", "test.npz"], 60):
        outcome = attempt(capsys, "--calibration", "30", "--finetune", "1", *more)
        assert outcome.code == 1
        assert outcome.err.endswith("luciole: error: that is enough\n")
        lines = [line for line in outcome.err.splitlines() if line.startswith("data: ")]
        shapes = [re.findall(r"\[(\d+),20\]", line) for line in lines]
        assert shapes == [["46"], [], [str(count)]]
        assert lines[1] == "data: 30 records teach, 16 judge the file"
        assert lines[2].endswith("(training)")
    missing = [
        np.flatnonzero(~(x[:, None] == part).all(2).any(1))
        for x, part in zip((X_MANY, X), seen, strict=True)
    ]
    assert missing[0].tolist() == missing[1].tolist(), "the same records judge"
    assert len(missing[0]) == 16
    assert missing[0][-1] < 46


def test_lquantizer_refuses_labels_that_are_no_classes_before_anything_is_learned(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(luciole.api, "quantize", lambda *given, **more: 1 / 0)
    np.save("labels.npy", np.arange(60))
    text = attempt(capsys, "--finetune", "1", "--labels", "labels.npy").error(1)
    assert text.startswith("record 4 has label 4, output 'b' has 4 classes: 0 to 3")
    assert not Path("answer.circle").exists()


@pytest.mark.parametrize("option", ["--mirror", "--shift=1"])
def test_lquantizer_refuses_to_move_what_is_no_image(
    capsys: Capture, folder: Path, option: str
) -> None:
    pytest.importorskip("tensorflow")
    text = attempt(capsys, "--finetune", "1", option).error(1)
    assert text.startswith("shift and mirror need images [height, width, channels], records are")
    assert not Path("answer.circle").exists()


def test_fine_tuning_goes_on_from_a_checkpoint(capsys: Capture, folder: Path) -> None:
    """A finished run, of labels here, is taken up again: the same file, and no epoch is run a
    second time.
    """
    pytest.importorskip("tensorflow")
    luciole.save(network((20, 4)), "model.circle")
    labels = ("--labels", "test.npz:y_test")
    tune = ("--encode_bits", "2", "--finetune", "2", *labels, "--checkpoint", "run.npz")
    assert "accuracy" in quantize(capsys, *tune).err
    tuned = Path("answer.circle").read_bytes()
    assert Path("run.npz").exists()
    outcome = quantize(capsys, *tune, "--resume")
    assert Path("answer.circle").read_bytes() == tuned
    assert "s left" not in outcome.err
    text = attempt(capsys, *tune, "--resume", "--seed", "1").error
    assert "run.npz: it was made with other" in text(1)


def test_two_widths_in_one_word(capsys: Capture, folder: Path) -> None:
    quantize(capsys, "--encode_bits", "w2a4", "--no-proof")
    pair = Path("answer.circle").read_bytes()
    quantize(capsys, "--weight_bits", "2", "--input_bits", "4", "--no-proof")
    assert Path("answer.circle").read_bytes() == pair


def test_names_are_taken_off_when_asked_for(capsys: Capture, folder: Path) -> None:
    quantize(capsys)
    wanted, size = outputs(), file_size()
    outcome = quantize(capsys, "--strip_names", "--report", "report.json")
    assert file_size() < size
    assert json.loads(Path("report.json").read_text())["bytes_after"] == file_size()
    np.testing.assert_array_equal(outputs(), wanted)
    assert "fc1" in outcome.out
    found = call(capsys, "diff", "model.circle", "answer.circle", "--data", "test.npz")
    assert "the second model's names were taken off" in found.out


def test_lquantizer_refuses_what_cannot_be_trained_before_the_fit(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    model = luciole.load("model.circle")
    graph = model.graph
    graph.outputs = [graph.append(Ceil(graph.outputs[0]), "whole").output]
    luciole.save(model, "model.circle")
    monkeypatch.setattr(luciole.api, "quantize", None)
    text = attempt(capsys, "--finetune", "1").error(3)
    assert text.startswith("cannot fine-tune CEIL (1x): Ceil 'whole' has no form that can be tr")
    assert not Path("answer.circle").exists()


# ------------------------------------------------------------------ what does not go together
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--scheme levels:w2a4 --encode_bits 3",
            "scheme 'levels:w2a4' says the bits: leave encode_bits out",
        ),
        (
            "--encode_bits w2a4 --weight_bits 3",
            "encode_bits 'w2a4' says the bits: leave weight_bits out",
        ),
        ("--auto_bits --target_size 9 --scheme levels:w2a4", "target_size finds the bits: scheme "),
        ("--scheme=", "--scheme is empty: leave it out, or name one"),
        ("--report=", "argument --report: the path of a file is needed, found ''"),
        ("--target_size 9", "--target-size goes with --auto-bits"),
        ("--auto_bits --target_size 9kg", "argument --target-size: '9kg' is no size: write 60000"),
        ("--auto_bits --target_size 9 --target_drop 1", "--auto-bits goes with one of "),
        ("--auto_bits --target_size 9 --weights_only", "--auto-bits goes with --method fit and "),
        ("--auto_bits --target_drop 1 --method published", "--auto-bits goes with --method fit"),
        ("--weights_only --method published", "--weights-only goes with --method fit"),
        ("--unroll_lstm --method published", "--unroll-lstm goes with --method fit"),
        ("--update gradient", "--update goes with --method published"),
        ("--initialisation greedy", "--initialisation goes with --method published"),
        ("--finetune 0", "--finetune is 0: at least 1 epoch is needed"),
        ("--encode_bits 3 --mirror", "--mirror goes with --finetune EPOCHS"),
        ("--auto_bits --target_size 9 --encode_bits 2", "--auto-bits finds the widths: --encode-b"),
        (
            "--encode_bits two",
            "argument --encode-bits: encode_bits is 'two': a number or a pair",
        ),
        ("--encode_bits w5a4", "argument --encode-bits: weight bits are 5: 1 to 4 are possible"),
        ("--encode_bits 0", "argument --encode-bits: 0: 1 to 4 are possible"),
        ("--encode_bits 3 --labels y", "--labels goes with --finetune EPOCHS"),
        ("--checkpoint run.npz", "--checkpoint goes with --finetune EPOCHS"),
        ("--finetune 1 --resume", "--resume goes with --checkpoint FILE"),
    ],
)
def test_lquantizer_refuses_options_that_do_not_go_together(
    capsys: Capture, folder: Path, words: str, sentence: str
) -> None:
    before = left_behind(folder)
    assert attempt(capsys, *words.split()).error(2).startswith(sentence)
    assert left_behind(folder) == before


def test_lquantizer_refuses_to_fine_tune_without_tensorflow(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", None)
    text = attempt(capsys, "--finetune", "1").error(1)
    assert 'pip install ".[tensorflow]"' in text
    assert not Path("answer.circle").exists()


def test_a_model_without_an_lstm_needs_no_unrolling(capsys: Capture, folder: Path) -> None:
    luciole.save(network(), "model.circle")
    quantize(capsys, "--encode_bits", "1", "--no-proof")
    plain = Path("answer.circle").read_bytes()
    outcome = quantize(capsys, "--encode_bits", "1", "--unroll_lstm", "--no-proof")
    assert Path("answer.circle").read_bytes() == plain
    assert "warning: no LSTM to unroll: the model has no UNIDIRECTIONAL_SEQUENCE" in outcome.err
